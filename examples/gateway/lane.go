package main

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
)

// A lane is the way to one service behind the gateway: its connections, which no
// other service uses, and the guards around them.
type lane struct {
	upstream
	config  serviceConfig
	base    *http.Transport
	guards  *httpguard.Transport
	handler http.Handler
	log     *slog.Logger
}

func newLane(s serviceConfig, b *breaker.Breaker, logger *slog.Logger) (*lane, error) {
	l := &lane{
		upstream: upstream{name: s.name, prefix: strings.TrimSuffix(s.prefix, "/"), url: s.url, breaker: b},
		config:   s,
		base:     s.pool.transport(),
		log:      logger.With("service", s.name),
	}
	options := []httpguard.Option{
		httpguard.WithName(s.name),
		httpguard.WithBreaker(b),
		httpguard.WithAttemptTimeout(s.base),
	}
	if d := s.pool.bodyIdleTimeout; d > 0 {
		options = append(options, httpguard.WithBodyIdleTimeout(d))
	}
	var err error
	l.guards, err = httpguard.NewTransport(l.base, options...)
	if err != nil {
		return nil, err
	}
	l.handler = l.forward(l.guards, l.log)
	return l, nil
}

// transport returns a way to a service that passes on what it gets: it knows no
// proxy and unpacks nothing.
func (p pool) transport() *http.Transport {
	idle := p.mostIdle
	if idle == 0 {
		idle = -1 // to an http.Transport, 0 is two
	}
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: p.connectTimeout}).DialContext,
		TLSHandshakeTimeout:   p.connectTimeout,
		ResponseHeaderTimeout: p.responseHeaderTimeout,
		IdleConnTimeout:       p.idleTimeout,
		MaxConnsPerHost:       p.mostConnections,
		MaxIdleConnsPerHost:   idle,
		// What the server takes from clients; the default is ten times that for each slot.
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
	}
}

// knock tells in the log when the service cannot be reached. The gateway serves all
// the same: it may be back any time, and the other services are not to blame.
func (l *lane) knock(ctx context.Context) {
	port := cmp.Or(l.url.Port(), map[string]string{"http": "80", "https": "443"}[l.url.Scheme])
	dialer := net.Dialer{Timeout: l.config.pool.connectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(l.url.Hostname(), port))
	if err == nil {
		conn.Close()
	} else if ctx.Err() == nil {
		l.log.Warn("upstream cannot be reached", "url", l.url.String(), "error", err)
	}
}
