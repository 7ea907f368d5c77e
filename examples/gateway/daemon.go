package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
	"github.com/sluicego/sluice/metrics"
)

// A daemon is the gateway for real upstreams: it serves what its config says, until
// it is told to stop.
type daemon struct {
	config  config
	lanes   []*lane
	mux     *http.ServeMux // leads to the lanes
	metrics metrics.Set
	log     *slog.Logger

	gate  *httpguard.Gate // in front of all lanes
	drain httpguard.Drain // closes gate

	front, admin *door
}

// A door is an address that a server listens at.
type door struct {
	net.Listener
	server *http.Server
}

// newDaemon returns a daemon that does not listen yet.
func newDaemon(c config, logger *slog.Logger) (*daemon, error) {
	d := &daemon{config: c, log: logger, mux: http.NewServeMux()}
	options := []breaker.Option{breaker.WithMaxKeys(len(c.services)), breaker.WithLogger(logger)}
	for _, s := range c.services {
		options = append(options, breaker.WithOverride(s.name, breaker.WithConfig(s.breaker)))
	}
	breakers, err := breaker.NewGroup("upstream", options...)
	if err != nil {
		return nil, err
	}
	d.gate, err = httpguard.NewGate(
		httpguard.WithName("front"),
		httpguard.WithMaxInFlight(c.slots),
		httpguard.WithDrain(&d.drain),
		httpguard.WithLogger(logger),
	)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.metrics.Add("gate", d.gate), d.metrics.Add("breakers", breakers)); err != nil {
		return nil, err
	}
	for _, s := range c.services {
		if err := d.lead(s, breakers.Get(s.name)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// lead opens the lane to a service.
func (d *daemon) lead(s serviceConfig, b *breaker.Breaker) error {
	l, err := newLane(s, b, d.log)
	if err != nil {
		return err
	}
	d.lanes = append(d.lanes, l)
	d.mux.Handle(s.prefix, l.handler)
	if l.prefix != "" {
		d.mux.Handle(l.prefix, l.handler) // or the mux would send such a client elsewhere
	}
	return d.metrics.Add("transport/"+s.name, l.guards)
}

// listen opens both addresses, or none. Clients wait from then on; serve lets them in.
func (d *daemon) listen() (err error) {
	front := d.gate.Wrap(d.mux)
	if d.config.clientIdle > 0 {
		front = &steady{front, d.config.clientIdle}
	}
	if d.front, err = d.open("listen", d.config.listen, front); err != nil {
		return err
	}
	if d.admin, err = d.open("admin", d.config.admin, d.adminPages()); err != nil {
		d.front.Close()
	}
	return err
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
		err = d.finish(work)
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

// finish lets the requests that are inside end. New ones are answered meanwhile, too:
// with a 503 that sends their clients elsewhere.
func (d *daemon) finish(ctx context.Context) error {
	d.log.Info("gateway drains", "for", d.config.drain)
	ctx, cancel := context.WithTimeout(ctx, d.config.drain)
	defer cancel()
	d.drain.Begin()
	if err := d.drain.Wait(ctx); err != nil {
		return fmt.Errorf("requests cut off after %v: %d", d.config.drain, d.drain.InFlight())
	}
	d.front.server.Shutdown(ctx) // if it takes too long, no request is to blame
	d.log.Info("gateway has stopped")
	return nil
}
