package guardtest

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

func requestUntouched(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	var late sync.WaitGroup
	rt := wrap(base(func(req *http.Request) (*http.Response, error) {
		consume(req)
		// A base may still read the request when it has returned.
		late.Go(func() { _ = len(req.Header) + len(req.URL.Path) + len(req.Trailer) })
		return respond(req, 200, http.NoBody), nil
	}))
	defer late.Wait()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req := t.get()
		req.Method = method
		req.Header.Set("X-Caller", "here")
		if method == http.MethodPost {
			req.Body, req.ContentLength = watch("body"), 4
			req.GetBody = func() (io.ReadCloser, error) { return watch("body"), nil }
		}
		before, header, address := *req, req.Header.Clone(), *req.URL
		t.read(t.send(rt, req))
		switch {
		case req.Body != before.Body:
			t.errorf("%s: Body is another one", method)
		case (req.GetBody == nil) != (before.GetBody == nil):
			t.errorf("%s: GetBody has come or gone", method)
		case req.Method != before.Method, req.Host != before.Host, req.ContentLength != before.ContentLength, req.Close != before.Close,
			!slices.Equal(req.TransferEncoding, before.TransferEncoding):
			t.errorf("%s: it is now %s %s, %d bytes", method, req.Method, req.Host, req.ContentLength)
		case req.URL != before.URL, *req.URL != address:
			t.errorf("%s: URL is now %v", method, req.URL)
		case !maps.EqualFunc(req.Header, header, slices.Equal):
			t.errorf("%s: Header is now %v", method, req.Header)
		case req.Context() != before.Context():
			t.errorf("%s: the context is another one", method)
		}
	}
}

func contentLengthKept(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	type arrival struct {
		length int64
		body   string
	}
	var mu sync.Mutex
	var got arrival
	s := t.serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = arrival{r.ContentLength, string(body)}
	}))
	rt := wrap(s.base)
	for _, c := range []struct {
		which string
		body  io.Reader
		want  int64
	}{
		{"with GetBody", strings.NewReader("12345"), 5},
		{"without GetBody", watch("12345"), 5},
		{"of unknown length", watch("12345"), -1},
	} {
		req := t.request(http.MethodPut, s.url, c.body)
		req.ContentLength = c.want
		t.read(t.send(rt, req))
		mu.Lock()
		if want := (arrival{c.want, "12345"}); got != want {
			t.errorf("a body %s arrives with length %d as %q, not with length %d as %q", c.which, got.length, got.body, want.length, want.body)
		}
		mu.Unlock()
	}
}

func getBodyKept(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	rt := wrap(base(func(req *http.Request) (*http.Response, error) {
		defer consume(req)
		if req.GetBody == nil {
			t.errorf("the base's request has no GetBody")
		} else if again, err := req.GetBody(); err != nil {
			t.errorf("GetBody fails: %v", err)
		} else if text, _ := io.ReadAll(again); string(text) != "body" {
			t.errorf("GetBody gives %q, not %q", text, "body")
		}
		return respond(req, 200, http.NoBody), nil
	}))
	t.read(t.send(rt, t.request(http.MethodPost, "http://upstream.test/", strings.NewReader("body"))))
}

// The server answers one call on each connection, and closes it when the next one
// has arrived.
func staleConnectionRepeated(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	listener := t.listen()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(conn)
			if req, err := http.ReadRequest(in); err == nil {
				body, _ := io.ReadAll(req.Body)
				if string(body) != "body" {
					t.errorf("the body arrives as %q, not as %q", body, "body")
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				_, _ = http.ReadRequest(in)
			}
			_ = conn.Close()
		}
	}()
	direct := &http.Transport{}
	t.cleanup(direct.CloseIdleConnections)
	rt := wrap(direct)
	for range 3 {
		req := t.request(http.MethodPost, "http://"+listener.Addr().String(), strings.NewReader("body"))
		req.Header.Set("Idempotency-Key", "7")
		t.read(t.send(rt, req))
	}
}

// sickly is a server that answers with 503 and keeps what it got.
func (t *trial) sickly() (s *site, bodies func() []string) {
	var mu sync.Mutex
	var got []string
	s = t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, string(body))
		mu.Unlock()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

func postSentOnce(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s, bodies := t.sickly()
	// How the call ends is for another check.
	if resp, err := wrap(s.base).RoundTrip(t.request(http.MethodPost, s.url, strings.NewReader("body"))); err == nil {
		_ = resp.Body.Close()
	}
	if got := bodies(); len(got) != 1 {
		t.errorf("the server got %d requests", len(got))
	}
}

func attemptsAreWhole(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s, bodies := t.sickly()
	for name, body := range map[string]io.Reader{"with": strings.NewReader("body"), "without": watch("body")} {
		before := len(bodies())
		req := t.request(http.MethodPut, s.url, body)
		req.Header.Set("Idempotency-Key", "7")
		req.ContentLength = 4
		if resp, err := wrap(s.base).RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
		got := bodies()[before:]
		if len(got) == 0 {
			t.errorf("%s GetBody nothing arrives", name)
		}
		for i, text := range got {
			if text != "body" {
				t.errorf("%s GetBody, in attempt %d of %d the body arrives as %q, not as %q", name, i+1, len(got), text, "body")
			}
		}
	}
}

func redirectNotFollowed(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusFound)
		}
	}))
	resp := t.send(wrap(s.base), t.request(http.MethodGet, s.url+"/old", nil))
	if resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "/new" {
		t.errorf("the status is %d and Location %q, not 302 and %q", resp.StatusCode, resp.Header.Get("Location"), "/new")
	}
}
