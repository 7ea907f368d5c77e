package main

import (
	"context"
	"fmt"
	"io"
)

// demonstrate plays both acts and writes what they have shown. It returns the cause
// when ctx is done before, and an error when they did not show what they should.
func demonstrate(ctx context.Context, p plan, n network, listen string, out io.Writer, screen screen) error {
	fmt.Fprintf(out, `Clients send %d user and %d order requests a second through one front door with
%d slots. A request that finds none free waits up to %v, then gets a 503. Both
services answer in about %v, until order-service takes %v for each request.

`, userRate, orderRate, p.slots, patience, answerTime, hangTime)

	var s summary
	for _, part := range []struct {
		protected bool
		result    *result
	}{
		{false, &s.without},
		{true, &s.with},
	} {
		a := &act{plan: p, protected: part.protected, network: n, listen: listen, screen: screen}
		var err error
		if *part.result, err = a.play(ctx); err != nil {
			return err
		}
	}
	fmt.Fprint(out, s)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.judge(); err != nil {
		return fmt.Errorf("this run did not show what it should (on a busy machine, try a longer -duration):\n%w", err)
	}
	fmt.Fprintln(out, "\nSame clients, same slots, same incident: user-service did not notice it.")
	return nil
}
