package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"

	"github.com/sluicego/sluice/breaker"
)

// A service is an upstream, with its backend behind it and its clients in front.
type service struct {
	upstream
	backend  *backend
	entrance *entrance
	tally    *tally
	rate     int // requests a second
}

// A scene is all that takes part in an act: two services, and the gateway that
// leads to them through one front door.
type scene struct {
	users, orders *service
	door          *frontDoor
	gateway       *url.URL
	servers       *servers
	mux           *http.ServeMux
}

// newScene starts the servers of a scene; close it when it has been played. Each
// service gets the breaker that protect returns for its name, which may be nil.
func newScene(n network, listen string, slots int, protect func(name string) (*breaker.Breaker, error)) (_ *scene, err error) {
	s := &scene{door: newFrontDoor(slots), servers: &servers{network: n}, mux: http.NewServeMux()}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.gateway, err = s.servers.start(listen, s.mux); err != nil {
		return nil, err
	}
	if s.users, err = s.open("user", userRate, protect); err != nil {
		return nil, err
	}
	if s.orders, err = s.open("order", orderRate, protect); err != nil {
		return nil, err
	}
	return s, nil
}

// open starts the backend of a service, and the gateway's route to it.
func (s *scene) open(short string, rate int, protect func(name string) (*breaker.Breaker, error)) (*service, error) {
	svc := &service{backend: &backend{name: short + "-service"}, tally: &tally{}, rate: rate}
	url, err := s.servers.start("127.0.0.1:0", svc.backend)
	if err != nil {
		return nil, err
	}
	guard, err := protect(svc.backend.name)
	if err != nil {
		return nil, err
	}
	svc.upstream = upstream{name: svc.backend.name, prefix: "/api/" + short, url: url, breaker: guard}
	proxy, err := svc.proxy(s.servers.transport(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	svc.entrance = s.door.entrance(proxy)
	s.mux.Handle(svc.prefix+"/", svc.entrance)
	return svc, nil
}

// clients sends the requests of all services until ctx is done. It returns when
// the last has ended; what is out by then is cancelled.
func (s *scene) clients(ctx context.Context, now func() phase) {
	client := &http.Client{Transport: s.servers.transport()}
	var loads sync.WaitGroup
	for _, svc := range []*service{s.users, s.orders} {
		l := load{
			client: client,
			url:    s.gateway.JoinPath(svc.prefix, "42").String(),
			rate:   svc.rate,
			most:   2 * (cap(s.door.slots) + svc.rate),
			phase:  now,
			tally:  svc.tally,
		}
		loads.Go(func() { l.run(ctx) })
	}
	loads.Wait()
}

// close ends the servers.
func (s *scene) close() { s.servers.close() }
