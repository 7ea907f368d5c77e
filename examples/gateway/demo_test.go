package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The whole demonstration in virtual time, over pipes instead of sockets: what it
// claims must hold for each length.
func TestDemonstration_HoldsForEachLength(t *testing.T) {
	lengths := []time.Duration{10 * time.Second, 40 * time.Second}
	if !testing.Short() {
		// At 54 s the incident ends while slots are free again for the second time,
		// which is the best there is for the act without protection.
		lengths = append(lengths, 54*time.Second, 2*time.Minute)
	}
	for _, length := range lengths {
		t.Run(length.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := newPlan(length)
				require.NoError(t, err)
				var out bytes.Buffer
				start := time.Now()
				err = demonstrate(t.Context(), p, pipes(), "gateway:0", &out, newScreen(&out, false))
				assert.InDelta(t, length.Seconds(), time.Since(start).Seconds(), 0.1)
				require.NoError(t, err, out.String())
				t.Log(out.String())
			})
		})
	}
}

func TestDemonstration_EndsWithTheCauseWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := newPlan(40 * time.Second)
		require.NoError(t, err)
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Second, enough)
		defer cancel()
		start := time.Now()
		err = demonstrate(ctx, p, pipes(), "gateway:0", &bytes.Buffer{}, newScreen(&bytes.Buffer{}, true))
		require.ErrorIs(t, err, enough)
		assert.Equal(t, 7*time.Second, time.Since(start), "calls that hang do not hold it up")
	})
}

// pipes is a network in memory, so that it can be used in a bubble.
func pipes() network {
	var mu sync.Mutex
	listening := map[string]*pipeListener{}
	return network{
		listen: func(string) (net.Listener, error) {
			mu.Lock()
			defer mu.Unlock()
			l := &pipeListener{address: fmt.Sprintf("pipe-%d:80", len(listening)), dialed: make(chan net.Conn), closed: make(chan struct{})}
			listening[l.address] = l
			return l, nil
		},
		dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			mu.Lock()
			l := listening[address]
			mu.Unlock()
			near, far := net.Pipe()
			select {
			case l.dialed <- far:
				return near, nil
			case <-l.closed:
				return nil, net.ErrClosed
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

type pipeListener struct {
	address string
	dialed  chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr  { return l }
func (l *pipeListener) Network() string { return "pipe" }
func (l *pipeListener) String() string  { return l.address }
