package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/metrics"
)

// A daemon is the gateway for real upstreams: it serves what its config says, until
// it is told to stop.
type daemon struct {
	config  config
	lanes   []*lane
	metrics metrics.Set
	log     *slog.Logger

	front, admin *door
	draining     atomic.Bool // set by drain
}

// A door is an address that a server listens at.
type door struct {
	net.Listener
	server *http.Server
}

// newDaemon returns a daemon that listens, but does not serve yet. Its error says
// why it cannot.
func newDaemon(c config, logger *slog.Logger) (_ *daemon, err error) {
	d := &daemon{config: c, log: logger}
	options := []breaker.Option{breaker.WithMaxKeys(len(c.services)), breaker.WithLogger(logger)}
	for _, s := range c.services {
		options = append(options, breaker.WithOverride(s.name, breaker.WithConfig(s.breaker)))
	}
	breakers, err := breaker.NewGroup("upstream", options...)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, s := range c.services {
		l, err := newLane(s, breakers.Get(s.name), logger)
		if err != nil {
			return nil, err
		}
		d.lanes = append(d.lanes, l)
		mux.Handle(s.prefix, l.handler)
		if l.prefix != "" {
			mux.Handle(l.prefix, l.handler) // or the mux would send such a client elsewhere
		}
		if err := d.metrics.Add("transport/"+s.name, l.guards); err != nil {
			return nil, err
		}
	}
	if err := d.metrics.Add("breakers", breakers); err != nil {
		return nil, err
	}
	if d.front, err = d.open("listen", c.listen, mux); err != nil {
		return nil, err
	}
	if d.admin, err = d.open("admin", c.admin, d.adminPages()); err != nil {
		d.front.Close()
		return nil, err
	}
	return d, nil
}

// open listens at an address; key is where the config has it.
func (d *daemon) open(key, address string, h http.Handler) (*door, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return &door{l, &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(d.log.Handler(), slog.LevelWarn),
	}}, nil
}

// serve serves until ctx is done, and then lets the requests that it has end. It
// returns an error if it had to cut some off, or could not go on.
func (d *daemon) serve(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx)) // goes on while requests end
	var crew sync.WaitGroup
	failed := make(chan error, 2)
	for _, at := range []*door{d.front, d.admin} {
		at.server.BaseContext = func(net.Listener) context.Context { return work }
		crew.Go(func() {
			if err := at.server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	for _, l := range d.lanes {
		crew.Go(func() { l.knock(work) })
		crew.Go(func() { l.report(work, d.config.report) })
	}
	d.log.Info("gateway serves", "listen", d.front.Addr(), "admin", d.admin.Addr(), "services", len(d.lanes), "slots", d.config.slots)
	for _, l := range d.lanes {
		l.log.Info("service", "prefix", l.config.prefix, "url", l.url.String(), "timeout", l.config.base)
	}

	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = d.drain(work)
	}
	d.front.server.Close()
	d.admin.server.Close()
	stop()
	crew.Wait()
	for _, l := range d.lanes {
		l.base.CloseIdleConnections()
	}
	return err
}

// drain lets the requests that are served end.
func (d *daemon) drain(ctx context.Context) error {
	d.draining.Store(true)
	d.log.Info("gateway drains", "for", d.config.drain)
	ctx, cancel := context.WithTimeout(ctx, d.config.drain)
	defer cancel()
	if d.front.server.Shutdown(ctx) != nil {
		return fmt.Errorf("requests were cut off: they did not end within %v", d.config.drain)
	}
	d.log.Info("gateway has stopped")
	return nil
}
