package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// A network is where servers listen and how they are reached.
type network struct {
	listen func(address string) (net.Listener, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// sockets is the real one.
func sockets() network {
	return network{
		listen: func(address string) (net.Listener, error) { return net.Listen("tcp", address) },
		dial:   (&net.Dialer{Timeout: time.Second}).DialContext,
	}
}

// servers are the HTTP servers of an act, and the transports that reach them.
type servers struct {
	network    network
	serving    sync.WaitGroup
	running    []*http.Server
	transports []*http.Transport
}

// start serves h on address, and returns the URL it is found at.
func (s *servers) start(address string, h http.Handler) (*url.URL, error) {
	l, err := s.network.listen(address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	s.running = append(s.running, server)
	s.serving.Go(func() { server.Serve(l) }) // its error is that of close
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}

// transport returns a new way to reach servers. It keeps as many connections as are
// in use, and knows no proxy.
func (s *servers) transport() *http.Transport {
	t := &http.Transport{DialContext: s.network.dial, MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute}
	s.transports = append(s.transports, t)
	return t
}

// close ends all servers, and the calls that are still out.
func (s *servers) close() {
	for _, server := range s.running {
		server.Close()
	}
	s.serving.Wait()
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
}
