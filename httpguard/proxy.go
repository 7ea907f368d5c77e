package httpguard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/ratelimit"
)

// StatusClientClosedRequest is what proxies log when the client has left before
// there was an answer. It is for them: a client never sees it.
const StatusClientClosedRequest = 499

// ProxyErrorHandler returns an ErrorHandler for httputil.ReverseProxy: 503 with a
// Retry-After for what a guard refused, 504 when a time limit was over, 502 for
// every other error. Answers are those of Refuse: they may not be stored and tell
// nothing of the inside, and a Gate around the proxy counts no refusal as a failure.
//
// A client that has left gets nothing: the handler is aborted with
// http.ErrAbortHandler, for returning would send an empty 200, should somebody be
// there after all.
//
// Errors are logged with their status, method, upstream and path: refusals and
// clients that left (as 499) at Debug, the others at Warn. A nil logger is silent.
func ProxyErrorHandler(logger *slog.Logger) func(http.ResponseWriter, *http.Request, error) {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		status := statusFor(r.Context(), err)
		logProxyError(logger, r, status, err)
		if status == StatusClientClosedRequest {
			if r.Context().Value(http.ServerContextKey) != nil {
				panic(http.ErrAbortHandler)
			}
			return
		}
		Refuse(w, r, err)
	}
}

// StatusOf returns the status with which a gateway answers for a call that ended
// with err: 503 for a local refusal, but 429 for one by a limit of package ratelimit
// (unless its store failed), which is about the client and not the state of the server;
// 504 for a time limit, 499 for a caller that cancelled, 502 for everything else, and
// 200 for no error.
func StatusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, ratelimit.ErrLimited) && !errors.Is(err, ratelimit.ErrStore):
		return http.StatusTooManyRequests
	case errors.Is(err, sluice.ErrRejected):
		return http.StatusServiceUnavailable
	case timedOut(err):
		return http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled):
		return StatusClientClosedRequest
	}
	return http.StatusBadGateway
}

// statusFor is StatusOf for who knows the ctx of the request: who ended the call
// decides, whatever the error says.
func statusFor(ctx context.Context, err error) int {
	switch {
	case errors.Is(context.Cause(ctx), sluice.ErrTimeout):
		return http.StatusGatewayTimeout
	case errors.Is(ctx.Err(), context.Canceled):
		return StatusClientClosedRequest
	}
	status := StatusOf(err)
	if status == StatusClientClosedRequest {
		status = http.StatusBadGateway // the client is still there
	}
	return status
}

// refused reports whether a status is that of a refusal.
func refused(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
}

// retrySeconds is the Retry-After for a refusal: whole seconds, rounded up, at
// least 1, or 0 if asking again will never help.
func retrySeconds(err error) int64 {
	wait, _ := sluice.RetryAfter(err)
	if wait < 0 {
		return 0
	}
	whole := int64(wait / time.Second)
	if wait%time.Second > 0 {
		whole++
	}
	return max(1, whole)
}

func logProxyError(logger *slog.Logger, r *http.Request, status int, err error) {
	level := slog.LevelWarn
	if refused(status) || status == StatusClientClosedRequest {
		level = slog.LevelDebug
	}
	if logger == nil || !logger.Enabled(r.Context(), level) {
		return
	}
	logger.LogAttrs(r.Context(), level, "proxied call ended with an error",
		slog.Int("status", status),
		slog.String("method", r.Method),
		slog.String("upstream", origin(r.URL)),
		slog.String("path", r.URL.Path), // without the query, which may hold secrets
		slog.String("error", redacted(r.URL, err)),
	)
}
