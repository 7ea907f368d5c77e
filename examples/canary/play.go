package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/sluicego/sluice/canary"
)

// rounds is about how many calls of all users there are, for the pace: one before, five
// steps, a part of one or two, one after.
const rounds = 8

// A show is all that takes part.
type show struct {
	out        io.Writer
	picker     *canary.Picker
	judge      *canary.Judge
	controller *canary.Controller
	crowd      *crowd
	pace       time.Duration // of a round
	events     []canary.ControllerEvent
}

// play releases v2, which is good, and then v3, which is not.
func play(ctx context.Context, length time.Duration, users int, out io.Writer) error {
	s, stop, err := stage(length, users, out)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(out, "%d users call %s, which has two instances of each version behind it;\none user in a hundred has a broken account that fails everywhere\n", users, s.crowd.url)
	if _, err := s.round(ctx); err != nil {
		return err
	}
	if err := s.release(ctx, "v2", "which is good"); err != nil {
		return err
	}
	if s.controller.Status().State != canary.ControllerCompleted || s.picker.Stable().Name() != "v2" {
		return errors.New("the good release was not promoted")
	}
	if err := s.release(ctx, "v3", "which fails for every eighth user"); err != nil {
		return err
	}
	if s.controller.Status().State != canary.ControllerRolledBack {
		return errors.New("the bad release was not rolled back")
	}
	r, err := s.round(ctx)
	if err != nil {
		return err
	}
	back := r.moved[[2]string{"v3", "v2"}]
	fmt.Fprintf(out, "  after it v2 serves %d of %d users and v3 %d: %d have moved back, and %d elsewhere\n", r.served["v2"], users, r.served["v3"], back, r.movers()-back)
	if r.served["v3"] > 0 || r.movers() != back {
		return errors.New("the rollback was not what it should be")
	}
	return nil
}

// stage starts the servers and puts the gateway together.
func stage(length time.Duration, users int, out io.Writer) (*show, func(), error) {
	s := &show{out: out, pace: length / rounds}
	var err error
	s.picker, err = canary.New("checkout", "v1", canary.WithVersion("v2", 0, 0), canary.WithVersion("v3", 1, 0))
	if err != nil {
		return nil, nil, err
	}
	// Numbers for a show of seconds. Slow calls are not judged, since whoever watches it may
	// have a busy machine.
	s.judge, err = canary.NewJudge("checkout", canary.WithWarmUp(0), canary.WithSlowCalls(0), canary.WithMinUsers(5), canary.WithMinRequests(5), canary.WithTolerance(0.6))
	if err != nil {
		return nil, nil, err
	}
	s.controller, err = canary.NewController(s.picker, s.judge,
		canary.WithSteps(canary.Percent(1), canary.Percent(5), canary.Percent(25), canary.Percent(50), canary.All),
		canary.WithMinHold(0), canary.WithOnRamp(func(e canary.ControllerEvent) { s.events = append(s.events, e) }))
	if err != nil {
		return nil, nil, err
	}

	var servers []*http.Server
	stop := func() {
		for _, server := range servers {
			server.Close()
		}
	}
	serve := func(h http.Handler) (string, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		server := &http.Server{Handler: h, ErrorLog: log.New(silence{}, "", 0)}
		servers = append(servers, server)
		go server.Serve(l)
		return l.Addr().String(), nil
	}
	g := newGateway(s.picker, s.judge)
	broken := func(user int) bool { return user%100 == 0 }
	for version, failFor := range map[string]func(int) bool{
		"v1": broken, "v2": broken, "v3": func(user int) bool { return broken(user) || user%8 == 0 },
	} {
		var addresses []string
		for range 2 {
			address, err := serve(&service{version, failFor})
			if err != nil {
				stop()
				return nil, nil, err
			}
			addresses = append(addresses, address)
		}
		if err := g.add(version, addresses); err != nil {
			stop()
			return nil, nil, err
		}
	}
	address, err := serve(g)
	if err != nil {
		stop()
		return nil, nil, err
	}
	s.crowd = newCrowd("http://"+address, users)
	return s, func() { s.crowd.client.CloseIdleConnections(); stop() }, nil
}

// round lets all users call once, or fewer if the version is rolled back meanwhile.
func (s *show) round(ctx context.Context) (round, error) {
	return s.crowd.call(ctx, s.pace, func() bool {
		if s.controller.Status().State != canary.ControllerRamping || s.judge.Verdict().Result != canary.Fail {
			return true
		}
		s.controller.Tick()
		return s.controller.Status().State == canary.ControllerRamping
	})
}

const (
	headFormat = "  %-9s %-10s %-9s %-9s %-12s %s\n"
	rowFormat  = "  %-9v %5d %3.0f%% %9d %9d %-12v %s\n"
)

// release takes a version up the ladder until it is completed or rolled back.
func (s *show) release(ctx context.Context, version, kind string) error {
	fmt.Fprintf(s.out, "\nrelease %s, %s\n", version, kind)
	fmt.Fprintf(s.out, headFormat, "share", "users", "moved in", "others", "verdict", "because")
	stable := s.picker.Stable().Name()
	if err := s.controller.Start(version); err != nil {
		return err
	}
	for range 20 { // steps and repetitions; the ladder has five
		share, shown := s.controller.Status().Weight, len(s.events)
		expected := s.split(version)
		r, err := s.round(ctx)
		if err != nil {
			return err
		}
		s.controller.Tick()
		now := s.controller.Status()
		in := r.moved[[2]string{stable, version}]
		fmt.Fprintf(s.out, rowFormat, share, r.served[version], 100*float64(r.served[version])/float64(r.calls),
			in, r.movers()-in, now.Verdict.Result, now.Verdict.Reason)
		switch {
		case r.movers() != in:
			return fmt.Errorf("%d users moved who had not to", r.movers()-in)
		case r.calls == len(s.crowd.home) && r.served[version] != expected:
			return fmt.Errorf("%s served %d users, and the picker gives it %d", version, r.served[version], expected)
		}
		for _, e := range s.events[shown:] {
			if e.Kind == canary.ControllerReverted {
				fmt.Fprintf(s.out, "  rolled back after %d calls of it: %v of all users, exactly\n", r.served[version], e.Moved)
			} else if e.Kind == canary.ControllerDone {
				fmt.Fprintf(s.out, "  %s: %v\n", e.Cause, e.Moved)
			}
		}
		if now.State != canary.ControllerRamping {
			return nil
		}
	}
	return errors.New("the ramp does not end")
}

// split is how many of the users the picker gives to a version.
func (s *show) split(version string) int {
	n := 0
	for i := range s.crowd.home {
		if s.picker.Pick(userID(i)).Name() == version {
			n++
		}
	}
	return n
}
