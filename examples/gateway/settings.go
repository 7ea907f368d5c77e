package main

import (
	"strings"
	"time"

	"github.com/sluicego/sluice/breaker"
)

// settings are what all services have in common, and each may have otherwise.
type settings struct {
	// base is how long an attempt may take until its headers are there. max is for
	// a timeout that follows what it measures; this one is fixed at base.
	base, max time.Duration
	pool      pool
	breaker   breaker.Config
}

// A pool is how connections to a service are made and kept.
type pool struct {
	connectTimeout        time.Duration // a TLS handshake has as long again
	responseHeaderTimeout time.Duration // 0 is none
	bodyIdleTimeout       time.Duration // of a response that has begun and stands still; 0 is none
	idleTimeout           time.Duration // of a connection that is not used; 0 is none
	mostConnections       int           // for each host; 0 is no bound
	mostIdle              int           // for each host; 0 keeps none
}

func defaultSettings() settings {
	return settings{
		base: time.Second,
		max:  5 * time.Second,
		pool: pool{
			connectTimeout:        5 * time.Second,
			responseHeaderTimeout: 10 * time.Second,
			bodyIdleTimeout:       30 * time.Second,
			idleTimeout:           90 * time.Second,
			mostConnections:       200,
			mostIdle:              100,
		},
		breaker: breaker.DefaultConfig(),
	}
}

// read goes over what is there with what o has.
func (s *settings) read(o *object) {
	wrong, before := o.to, len(*o.to)
	timeout, pool := o.object("timeout"), o.object("transport")
	changed := len(timeout.members)+len(pool.members) > 0
	timeout.duration("base", &s.base, 1)
	timeout.duration("max", &s.max, 1)
	timeout.end()
	pool.duration("connect_timeout", &s.pool.connectTimeout, 1)
	pool.duration("response_header_timeout", &s.pool.responseHeaderTimeout, 0)
	pool.duration("body_idle_timeout", &s.pool.bodyIdleTimeout, 0)
	pool.duration("idle_timeout", &s.pool.idleTimeout, 0)
	pool.whole("max_connections_per_host", &s.pool.mostConnections, 0)
	pool.whole("max_idle_connections_per_host", &s.pool.mostIdle, 0)
	pool.end()
	// What cannot be read has been blamed, and what is taken over has been checked.
	if changed && len(*wrong) == before {
		if s.max < s.base {
			wrong.add(timeout.at("max"), "%v is less than base %v", s.max, s.base)
		}
		if t := s.pool.responseHeaderTimeout; t > 0 && t < s.base {
			wrong.add(pool.at("response_header_timeout"), "%v ends each attempt before timeout.base %v does", t, s.base)
		}
	}
	if o.itself("breaker", &s.breaker) {
		for _, err := range each(s.breaker.Validate()) {
			wrong.add(o.at("breaker"), "%s", strings.TrimPrefix(err.Error(), "breaker: "))
		}
	}
}
