package guardtest

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"sync/atomic"
	"time"
)

func answerUntouched(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("X-Handler", "here")
		w.Header().Set("Content-Type", "text/plain")
		if status != 200 {
			w.WriteHeader(status)
		}
		if status != 204 && status != 304 {
			_, _ = io.WriteString(w, "answer")
			flush(w)
			_, _ = io.WriteString(w, " and more")
		}
		time.Sleep(time.Millisecond) // it is not over when all is written
	}))
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodHead} {
		for _, status := range []int{200, 201, 204, 304, 400, 404, 500, 503} {
			want := "answer and more"
			if method == http.MethodHead || status == 204 || status == 304 {
				want = ""
			}
			resp := t.send(s.base, t.request(method, s.url+"/"+strconv.Itoa(status), nil))
			if body := t.read(resp); resp.StatusCode != status || body != want || resp.Header.Get("X-Handler") != "here" {
				t.errorf("%s: %d and %q arrive as %d and %q with header %v", method, status, want, resp.StatusCode, body, resp.Header)
			}
		}
	}
}

func emptyAnswerIs200(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, func(http.ResponseWriter, *http.Request) {}))
	resp := t.send(s.base, t.request(http.MethodGet, s.url, nil))
	if body := t.read(resp); resp.StatusCode != 200 || body != "" {
		t.errorf("nothing arrives as %d and %q", resp.StatusCode, body)
	}
}

func firstStatusWins(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		want := http.StatusCreated
		if r.URL.Path == "/written" {
			_, _ = io.WriteString(w, "body")
		} else {
			w.WriteHeader(want)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	for path, want := range map[string]int{"/written": 200, "/status": 201} {
		resp := t.send(s.base, t.request(http.MethodGet, s.url+path, nil))
		if t.read(resp); resp.StatusCode != want {
			t.errorf("the status is %d, not %d", resp.StatusCode, want)
		}
	}
}

func earlyHintsArrive(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		for range 2 {
			w.Header().Add("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
		}
		if r.URL.Path == "/404" {
			w.WriteHeader(404)
		}
		_, _ = io.WriteString(w, "body")
	}))
	for path, want := range map[string]int{"/implicit": 200, "/404": 404} {
		var hints atomic.Int64
		ctx := httptrace.WithClientTrace(t.ctx, &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
			hints.Add(1)
			return nil
		}})
		resp := t.send(s.base, t.request(http.MethodGet, s.url+path, nil).WithContext(ctx))
		if body := t.read(resp); hints.Load() != 2 || resp.StatusCode != want || body != "body" {
			t.errorf("two hints and %d arrive as %d hints, %d and %q", want, hints.Load(), resp.StatusCode, body)
		}
	}
}

func handlerTrailersArrive(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, trailing))
	t.hasTrailers(s, s.base)
}

func handlerEventsArriveAtOnce(t *trial, wrap func(http.Handler) http.Handler) {
	handler, seen := t.events()
	s := t.serve(mount(wrap, handler))
	t.readEvents(t.send(s.base, t.request(http.MethodGet, s.url, nil)), seen)
}
