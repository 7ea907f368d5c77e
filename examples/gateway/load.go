package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// catchUp is how far a load may fall behind and still make up for it. If it is more,
// the machine stood still, and the gateway with it: a flood of requests all at once
// would be nobody's clients.
const catchUp = 250 * time.Millisecond

// A load is the clients of one service: an open loop of so many requests a second,
// evenly spaced. A slow answer does not slow the requests that follow.
type load struct {
	client *http.Client
	url    string
	rate   int
	most   int // requests out at once; one more fails without being sent
	phase  func() phase
	tally  *tally
}

// run sends requests until ctx is done, and returns when all of them have ended.
func (l *load) run(ctx context.Context) {
	var out sync.WaitGroup
	defer out.Wait()
	seats := make(chan struct{}, l.most)
	start := time.Now()
	wait := time.NewTimer(0)
	defer wait.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		during := l.phase()
		l.tally.sent(during)
		select {
		case seats <- struct{}{}:
			out.Go(func() {
				l.send(ctx, during)
				<-seats
			})
		default:
			l.tally.answered(during, 0, 0)
		}
		// Each time is reckoned from the start, so that a late one makes no other late.
		due := start.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
		if late := time.Since(due); late > catchUp {
			start = start.Add(late)
		}
		wait.Reset(time.Until(due))
	}
}

// send makes one request and counts its answer.
func (l *load) send(ctx context.Context, during phase) {
	start := time.Now()
	status := l.get(ctx)
	if ctx.Err() == nil { // at the end of the act, what is still out is cut off
		l.tally.answered(during, status, time.Since(start))
	}
}

// get returns the status of an answer that came whole, or 0.
func (l *load) get(ctx context.Context) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return 0
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}
