package main

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// steady cuts off clients that stand still while they send or receive a body. Each
// would hold a slot for as long as it likes: no limit of an attempt ends a Read from
// the client that is under way, nor a Write to it. A connection that has switched
// protocols is not its concern.
type steady struct {
	next http.Handler
	idle time.Duration // how long each Read and Write may take
}

func (s *steady) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client := &standing{connection: http.NewResponseController(w), idle: s.idle}
	defer client.leave()
	if r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // the server looks at the body of its own request
		r.Body = &steadyBody{r.Body, client}
	}
	s.next.ServeHTTP(&steadyWriter{w, client}, r)
}

// standing gives a client its time. That a connection knows no deadlines is no reason
// to refuse it.
type standing struct {
	connection *http.ResponseController
	idle       time.Duration

	mu   sync.Mutex
	left bool // the connection may be in its next request; guarded by mu
}

// reads is for a Read that begins. The server takes the deadline back when the body
// has ended.
func (s *standing) reads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left { // the proxy may still be about to read
		s.connection.SetReadDeadline(time.Now().Add(s.idle))
	}
}

// writes is for a Write that begins.
func (s *standing) writes() { s.connection.SetWriteDeadline(time.Now().Add(s.idle)) }

// leave is for the end of the handler. What the server still has to write has its time,
// too; then it takes the deadline back.
func (s *standing) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	s.writes()
}

type steadyBody struct {
	io.ReadCloser
	client *standing
}

func (b *steadyBody) Read(p []byte) (int, error) {
	b.client.reads()
	return b.ReadCloser.Read(p)
}

// A steadyWriter has Unwrap for what http.ResponseController does, and the proxy asks
// for no more.
type steadyWriter struct {
	http.ResponseWriter
	client *standing
}

func (w *steadyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *steadyWriter) Write(p []byte) (int, error) {
	w.client.writes()
	return w.ResponseWriter.Write(p)
}
