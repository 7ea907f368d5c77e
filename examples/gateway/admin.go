package main

import (
	"encoding/json"
	"io"
	"net/http"
)

// adminPages are what operators look at.
func (d *daemon) adminPages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", d.healthz)
	mux.HandleFunc("GET /debug/sluice", d.debug)
	return mux
}

// healthz answers 200 while new requests are served, and 503 while the gateway drains.
func (d *daemon) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if d.drain.Begun() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ok\n")
}

// debug shows all guards as JSON.
func (d *daemon) debug(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	pretty := json.NewEncoder(w)
	pretty.SetIndent("", "  ")
	pretty.Encode(&d.metrics) // its error is that of the connection
}
