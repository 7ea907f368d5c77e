package httpguard

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/sluicego/sluice"
)

// Refuse answers a request that ended with err before there was an answer: in a
// handler that has asked a guard itself, as a Gate answers for its own. The status is
// that of StatusOf: 503 for a refusal, 429 for one of package ratelimit, with a
// Retry-After of whole seconds, at least 1, unless asking again is of no use. The answer may not be stored, and tells nothing
// of the inside. A client that has left gets no body. Where the response has begun,
// nothing is added to it. The body of the request is not read.
//
// Refuse is Fail(w, err) too, so a refusal of a guard further in counts nowhere as a
// failure. A nil err is answered as a refusal.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		err = errRefused
	}
	problem, begun := false, false
	for v := range visits(w) {
		problem = problem || v.gate.settings.server.problem
		begun = begun || v.status.Load() != 0 || v.left.Load()
	}
	Fail(w, err)
	if begun {
		return
	}
	status := statusFor(r.Context(), err)
	setRefusalHeader(w, status, err)
	writeRefusal(w, r, status, problem)
}

var errRefused = fmt.Errorf("httpguard: refused by the handler: %w", sluice.ErrRejected)

// refuse is Refuse for what the Gate itself refuses. The Gates around it hear of it.
func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, err error) {
	Fail(w, err)
	status := statusFor(r.Context(), err)
	switch {
	case status == StatusClientClosedRequest:
		g.countLeft(r, err)
	case err == error(g.late):
		status = http.StatusServiceUnavailable // a server's own limit; a gateway's is a 504
	default:
		g.log(r.Context(), slog.LevelDebug, "request refused",
			slog.Int("status", status),
			slog.String("method", knownMethod(r.Method)),
			slog.String("pattern", r.Pattern),
			slog.Any("error", err),
		)
	}
	setRefusalHeader(w, status, err)
	if err == g.draining && err != nil {
		w.Header().Set("Connection", "close") // over HTTP/2 this is a GOAWAY
	}
	if f := g.settings.server.refusal; f != nil && status != StatusClientClosedRequest {
		f(w, r, err)
		return
	}
	writeRefusal(w, r, status, g.settings.server.problem)
}

// setRefusalHeader says that the answer may not be stored, and when to come again.
func setRefusalHeader(w http.ResponseWriter, status int, err error) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if !refused(status) {
		return
	}
	if seconds := retrySeconds(err); seconds > 0 {
		header.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
}

// writeRefusal writes the status, and a line or a problem that says no more.
func writeRefusal(w http.ResponseWriter, r *http.Request, status int, problem bool) {
	switch {
	case status == StatusClientClosedRequest:
		w.WriteHeader(status) // for logs
	case problem:
		header := w.Header()
		header.Del("Content-Length") // no more than http.Error does, as something outside may encode what is written here
		header.Set("Content-Type", "application/problem+json")
		header.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d}`+"\n", http.StatusText(status), status)
	default:
		http.Error(w, http.StatusText(status), status)
	}
}
