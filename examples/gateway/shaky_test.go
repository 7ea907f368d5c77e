package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A fault is what a shaky backend does to requests instead of answering them.
type fault int32

const (
	hang     fault = iota + 1 // no answer, for as long as somebody waits for it
	reset                     // the connection is reset
	fail                      // 500
	drip                      // the body comes slowly
	truncate                  // the body breaks off
	stall                     // the body stands still
	kill                      // nobody listens
)

var faults = []fault{hang, reset, fail, drip, truncate, stall, kill}

func (f fault) String() string {
	return [...]string{hang: "hang", reset: "reset", fail: "500", drip: "slow body", truncate: "truncated body", stall: "stalled body", kill: "killed backend"}[f]
}

// A shaky backend answers a request for /SIZE/ID with ID over and over, SIZE bytes of
// it. A request meets the fault of the moment or is well served, as it happens.
type shaky struct {
	address string // kept when it comes back
	server  *http.Server
	over    chan struct{}          // closed when server no longer accepts
	fault   atomic.Int32           // suffer writes it
	met     [kill + 1]atomic.Int64 // requests that met a fault, or times it was killed
}

// listen begins to serve.
func (s *shaky) listen() error {
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", s.address)
	for tries := 0; err != nil && tries < 2000; tries++ { // some connection may have its port for a while
		time.Sleep(5 * time.Millisecond)
		l, err = net.Listen("tcp", s.address)
	}
	if err != nil {
		return err
	}
	s.address = l.Addr().String()
	server, over := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}, make(chan struct{})
	s.server, s.over = server, over
	go func() { server.Serve(l); close(over) }()
	return nil
}

// close ends it as the end of its process would.
func (s *shaky) close() {
	s.server.Close()
	<-s.over
}

// suffer goes through all faults in a random order, each for about a spell and until
// it has been met, with spells of health between them. It begins again until ctx is
// done, and ends healthy; or it returns an error when no request comes.
func (s *shaky) suffer(ctx context.Context, spell time.Duration) error {
	const enough = 30 * time.Second // far more than any breaker stays open
	about := func() time.Duration { return spell/2 + rand.N(spell) }
	for ctx.Err() == nil {
		for _, i := range rand.Perm(len(faults)) {
			f := faults[i]
			if f == kill {
				s.met[kill].Add(1)
				s.close()
				time.Sleep(about())
				if err := s.listen(); err != nil {
					return err
				}
			} else {
				start, before := time.Now(), s.met[f].Load()
				s.fault.Store(int32(f))
				for time.Sleep(about()); s.met[f].Load() == before; time.Sleep(time.Millisecond) {
					if time.Since(start) > enough {
						return fmt.Errorf("%v: no request has come for %v", f, enough)
					}
				}
				s.fault.Store(0)
			}
			time.Sleep(about())
		}
	}
	return nil
}

func (s *shaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the client has left
	}
	dir, id := path.Split(r.URL.Path)
	size, err := strconv.Atoi(strings.Trim(dir, "/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	body := filled(size, id)
	if rand.N(2) == 0 {
		w.Header().Set("Content-Length", strconv.Itoa(size)) // else chunked
	}
	f := fault(s.fault.Load())
	if f == 0 || rand.N(2) == 0 {
		w.Write(body)
		return
	}
	s.met[f].Add(1)
	out := http.NewResponseController(w)
	switch f {
	case hang:
		<-r.Context().Done()
	case reset:
		if conn, _, err := out.Hijack(); err == nil {
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	case fail:
		w.Header().Del("Content-Length")
		http.Error(w, "broken", http.StatusInternalServerError)
	case drip:
		for piece := range slices.Chunk(body, size/5+1) {
			w.Write(piece)
			out.Flush()
			time.Sleep(20 * time.Millisecond)
		}
	case truncate:
		w.Write(body[:size/2])
		out.Flush()
		panic(http.ErrAbortHandler)
	case stall:
		w.Write(body[:size/2])
		out.Flush()
		<-r.Context().Done()
	}
}

// filled is size bytes of id, over and over.
func filled(size int, id string) []byte {
	return bytes.Repeat([]byte(id), size/len(id)+1)[:size]
}
