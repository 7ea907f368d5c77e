package guardtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/httpguard/guardtest"
)

// A broken wrapper does what the check of that name has to see, in the words of want.
type broken[T any] struct {
	check string
	want  string
	wrap  func(T) T
}

const atOnce = 16 // checks that run; mostly they wait

// catch runs a check on its broken wrapper, which may make it hang, for a time that is
// enough for it to come to the moment in question, or else, on a busy machine, for one
// that certainly is.
func catch[T any](ctx context.Context, c guardtest.Check[T], b broken[T]) (err error) {
	for _, limit := range []time.Duration{3 * time.Second, 30 * time.Second} {
		ctx, cancel := context.WithTimeout(ctx, limit)
		err = c.Run(ctx, b.wrap)
		cancel()
		if err != nil && strings.Contains(err.Error(), b.want) {
			break
		}
	}
	return err
}

// eachIsCaught runs each check on the broken wrapper of its name. A check without one
// could be one that cannot fail.
func eachIsCaught[T any](t *testing.T, checks []guardtest.Check[T], all []broken[T]) {
	named, used := map[string]broken[T]{}, map[string]bool{}
	for _, b := range all {
		require.NotContains(t, named, b.check)
		named[b.check] = b
	}
	errs := make([]error, len(checks))
	running := make(chan struct{}, atOnce)
	var done sync.WaitGroup
	for i, c := range checks {
		require.Containsf(t, named, c.Name, "no broken wrapper shows that %s can fail", c.Name)
		used[c.Name] = true
		done.Go(func() {
			running <- struct{}{}
			defer func() { <-running }()
			errs[i] = catch(t.Context(), c, named[c.Name])
		})
	}
	done.Wait()
	for i, c := range checks {
		t.Run(c.String(), func(t *testing.T) {
			var failure *guardtest.Failure
			require.ErrorAs(t, errs[i], &failure)
			assert.Contains(t, fmt.Sprint(failure.Seen), named[c.Name].want)
			assert.Contains(t, failure.Error(), c.Rule)
			assert.Contains(t, failure.Error(), c.String())
		})
	}
	for name := range named {
		assert.Truef(t, used[name], "there is no check %s", name)
	}
}

// tripper makes a function a RoundTripper, and has no CloseIdleConnections.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// sends is a wrapper that sends another request than it got.
func sends(change func(sent *http.Request)) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			sent := req.WithContext(req.Context())
			change(sent)
			return base.RoundTrip(sent)
		})
	}
}

// returns is a wrapper that returns another response than it got.
func returns(change func(resp *http.Response, err error) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) { return change(base.RoundTrip(req)) })
	}
}

// withBody is returns for the body of a response.
func withBody(change func(io.ReadCloser) io.ReadCloser) func(http.RoundTripper) http.RoundTripper {
	return returns(func(resp *http.Response, err error) (*http.Response, error) {
		if err == nil {
			resp.Body = change(resp.Body)
		}
		return resp, err
	})
}

// repeats is a wrapper that tries once more after a 503.
func repeats(between func(first *http.Response, req *http.Request) *http.Request) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(req)
			if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
				return resp, err
			}
			return base.RoundTrip(between(resp, req))
		})
	}
}

func gathered(sent *http.Request) {
	if sent.Body != nil {
		body, _ := io.ReadAll(sent.Body)
		_ = sent.Body.Close()
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
}

func bodyLeftOpen(sent *http.Request) {
	if sent.Body != nil {
		sent.Body = io.NopCloser(sent.Body)
	}
}

func getBodyDropped(sent *http.Request)  { sent.GetBody = nil }
func connectionEnded(sent *http.Request) { sent.Close = true }
func contextReplaced(sent *http.Request) { *sent = *sent.WithContext(context.Background()) }
func contextDetached(sent *http.Request) {
	*sent = *sent.WithContext(context.WithoutCancel(sent.Context()))
	sent.Cancel = nil //lint:ignore SA1019 this is what is dropped
}

// hushed is a body whose end looks good, whatever it was.
type hushed struct{ io.ReadCloser }

func (b hushed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// ending tells the end of what is read.
type ending struct {
	io.ReadCloser
	once sync.Once
	end  chan struct{}
}

func (b *ending) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.once.Do(func() { close(b.end) })
	}
	return n, err
}

func (b *ending) Close() error {
	b.once.Do(func() { close(b.end) })
	return b.ReadCloser.Close()
}

// naive is a breaker that opens after 20 failures in a row, and lets every third call
// be a probe.
type naive struct {
	base   http.RoundTripper
	counts func(resp *http.Response, err error) bool // as a failure
	refuse func(req *http.Request) (*http.Response, error)

	mu       sync.Mutex
	failures int
	refused  int
	probing  bool // forgotten when a probe panics, or is cancelled
}

func (n *naive) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	if n.failures >= 20 {
		n.refused++
		if n.probing || n.refused%3 != 0 {
			n.mu.Unlock()
			return n.refuse(req)
		}
		n.probing = true
	}
	probe := n.probing
	n.mu.Unlock()
	resp, err := n.base.RoundTrip(req)
	if probe && errors.Is(err, context.Canceled) {
		return resp, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.probing = false
	if n.counts(resp, err) {
		n.failures++
	} else {
		n.failures = 0
	}
	return resp, err
}

func anyFailure(resp *http.Response, err error) bool { return err != nil || resp.StatusCode >= 500 }

var errOpen = errors.New("open")

func closing(err error) func(req *http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
}

func newNaive(counts func(*http.Response, error) bool, refuse func(*http.Request) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		return &naive{base: base, counts: counts, refuse: refuse}
	}
}

func TestTransportChecks_EachCatchesItsBrokenWrapper(t *testing.T) {
	t.Parallel()
	type transport = http.RoundTripper
	eachIsCaught(t, guardtest.TransportChecks(), []broken[transport]{
		{"RequestUntouched", "Header is now", func(base transport) transport {
			return tripper(func(req *http.Request) (*http.Response, error) {
				req.Header.Set("X-Attempt", "1")
				return base.RoundTrip(req)
			})
		}},
		{"ContentLengthKept", "arrives with length -1", sends(func(sent *http.Request) { sent.ContentLength = -1 })},
		{"GetBodyKept", "no GetBody", sends(getBodyDropped)},
		{"StaleConnectionRepeated", "fails", sends(getBodyDropped)},
		{"PostSentOnce", "got 2 requests", repeats(func(first *http.Response, req *http.Request) *http.Request {
			_ = first.Body.Close()
			again := req.Clone(req.Context())
			again.Body, _ = req.GetBody()
			return again
		})},
		{"AttemptsAreWhole", `attempt 2 of 2 the body arrives as ""`, repeats(func(first *http.Response, req *http.Request) *http.Request {
			_ = first.Body.Close()
			again := req.Clone(req.Context())
			again.Body, again.ContentLength = nil, 0
			return again
		})},
		{"RedirectNotFollowed", "the status is 200", func(base transport) transport {
			return tripper((&http.Client{Transport: base}).Do)
		}},
		{"UploadStreamed", "waited in vain for the first bytes", sends(gathered)},
		{"ExpectContinueKept", "the body is read", sends(gathered)},
		{"BodyClosedAfterAnswer", "waited in vain for the request body", sends(bodyLeftOpen)},
		{"BodyClosedWhenContextDone", "waited in vain for the request body", func(base transport) transport {
			return tripper(func(req *http.Request) (*http.Response, error) {
				if err := req.Context().Err(); err != nil {
					return nil, err
				}
				return base.RoundTrip(req)
			})
		}},
		{"BodyClosedWhenDialFails", "waited in vain for the request body", sends(bodyLeftOpen)},
		{"ContextValuesKept", "the value is <nil>", sends(contextReplaced)},
		{"CancelEndsCall", "answered with 200", sends(contextDetached)},
		{"CancelEndsBody", "waited in vain for the server", sends(contextDetached)},
		{"DeadlineEndsCall", "answered with 200", sends(contextDetached)},
		{"ClientTimeoutEndsCall", "answered with 200", sends(contextDetached)},
		{"ClientTimeoutEndsBody", "seems to have come to its end", sends(contextDetached)},
		{"RequestCancelKept", "answered with 200", sends(contextDetached)},
		{"TraceKept", "was called 0 times", sends(contextReplaced)},
		{"ContextLivesAsLongAsBody", "reading the body fails", func(base transport) transport {
			return tripper(func(req *http.Request) (*http.Response, error) {
				ctx, cancel := context.WithTimeout(req.Context(), time.Hour)
				defer cancel()
				return base.RoundTrip(req.WithContext(ctx))
			})
		}},
		{"ContextReleased", "after the body was read to its end", func(base transport) transport {
			return tripper(func(req *http.Request) (*http.Response, error) {
				ctx, cancel := context.WithCancel(req.Context())
				resp, err := base.RoundTrip(req.WithContext(ctx))
				if err == nil { // and nobody calls it
					resp.Body = struct {
						io.ReadCloser
						cancel context.CancelFunc
					}{resp.Body, cancel}
					return resp, nil
				}
				cancel()
				return nil, err
			})
		}},
		{"StatusIsNoError", "503 becomes the error", returns(func(resp *http.Response, err error) (*http.Response, error) {
			if err == nil && resp.StatusCode >= 500 {
				_ = resp.Body.Close()
				return nil, fmt.Errorf("status %d", resp.StatusCode)
			}
			return resp, err
		})},
		{"ResponseKept", "its length is now -1", returns(func(resp *http.Response, err error) (*http.Response, error) {
			resp.ContentLength = -1
			return resp, err
		})},
		{"TrailersArrive", `/surprise: the trailer is ""`, returns(func(resp *http.Response, err error) (*http.Response, error) {
			copied := *resp
			return &copied, err
		})},
		{"EarlyAnswerArrives", "hangs", func(base transport) transport {
			return tripper(func(req *http.Request) (*http.Response, error) {
				sent, body := req.WithContext(req.Context()), &ending{ReadCloser: req.Body, end: make(chan struct{})}
				sent.Body = body
				resp, err := base.RoundTrip(sent)
				select {
				case <-body.end:
					return resp, err
				case <-req.Context().Done():
					_ = resp.Body.Close()
					return nil, req.Context().Err()
				}
			})
		}},
		{"OddBaseSurvived", "nothing makes it panic", withBody(func(body io.ReadCloser) io.ReadCloser { return body })},
		{"SecretsNotInErrors", "hunter2", func(base transport) transport {
			return tripper(func(req *http.Request) (*http.Response, error) {
				resp, err := base.RoundTrip(req)
				if err != nil {
					err = fmt.Errorf("%s: %w", req.URL, err)
				}
				return resp, err
			})
		}},
		{"EventsArriveAtOnce", "an event", withBody(func(body io.ReadCloser) io.ReadCloser {
			whole, _ := io.ReadAll(body)
			_ = body.Close()
			return io.NopCloser(bytes.NewReader(whole))
		})},
		{"CloseReachesBase", "Close after 0 of 4 bytes does not reach", withBody(func(body io.ReadCloser) io.ReadCloser {
			return io.NopCloser(body)
		})},
		{"BrokenAnswerIsAnError", "ends as if it were whole", withBody(func(body io.ReadCloser) io.ReadCloser { return hushed{body} })},
		{"ServesReverseProxy", "is 502", func(base transport) transport { return tripper((&http.Client{Transport: base}).Do) }},
		{"UpgradeWritable", "answers with 502, not 101", withBody(func(body io.ReadCloser) io.ReadCloser {
			return struct{ io.ReadCloser }{body}
		})},
		{"UpgradeHalfCloses", "the server's last words are", withBody(func(body io.ReadCloser) io.ReadCloser {
			return struct{ io.ReadWriteCloser }{body.(io.ReadWriteCloser)}
		})},
		{"ConnectionsReused", "took 19 connections more", sends(connectionEnded)},
		{"EmptyAnswersKeepConnection", "took 14 connections more", sends(connectionEnded)},
		{"AbandonedResponsesClosed", "hangs", repeats(func(_ *http.Response, req *http.Request) *http.Request { return req })},
		{"CloseIdleConnectionsArrives", "20 calls took one connection", sends(func(*http.Request) {})},
		{"IdleConnectionsLeftAlone", "took 1 connections more", func(base transport) transport {
			return tripper(func(req *http.Request) (*http.Response, error) {
				resp, err := base.RoundTrip(req)
				if err != nil {
					base.(interface{ CloseIdleConnections() }).CloseIdleConnections()
				}
				return resp, err
			})
		}},
		{"ErrorPassesOn", "does not match that of the base", returns(func(resp *http.Response, err error) (*http.Response, error) {
			return resp, errors.New("it failed: " + err.Error())
		})},
		{"PanicPassesOn", "what arrives is the panic it panicked", func(base transport) transport {
			return tripper(func(req *http.Request) (*http.Response, error) {
				defer func() {
					if p := recover(); p != nil {
						panic(fmt.Sprint("it panicked: ", p))
					}
				}()
				return base.RoundTrip(req)
			})
		}},
		{"GoexitPassesOn", "the call returns as if nothing had been", func(base transport) transport {
			return tripper(func(req *http.Request) (resp *http.Response, err error) {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					resp, err = base.RoundTrip(req)
				}()
				<-ended
				if resp == nil && err == nil {
					err = errors.New("no response")
				}
				return resp, err
			})
		}},
		{"SafeForConcurrentUse", "fails: busy", func(base transport) transport {
			var mu sync.Mutex
			return tripper(func(req *http.Request) (*http.Response, error) {
				if !mu.TryLock() {
					return nil, errors.New("busy")
				}
				defer mu.Unlock()
				return base.RoundTrip(req)
			})
		}},
		{"FailingStatusesTrip", "answers with 500 do not", newNaive(func(_ *http.Response, err error) bool { return err != nil }, closing(errOpen))},
		{"NotFoundsDoNotTrip", "after answers with 404", newNaive(func(resp *http.Response, err error) bool {
			return err != nil || resp.StatusCode >= 400
		}, closing(errOpen))},
		{"CancelsDoNotTrip", "after 20 calls that were cancelled", newNaive(anyFailure, closing(errOpen))},
		{"BrokenUploadsDoNotTrip", "the next call is answered with 502", newNaive(anyFailure, closing(errOpen))},
		{"RefusalWellFormed", "the caller's context is alive", newNaive(anyFailure, closing(context.Canceled))},
		{"BodyClosedWhenRefused", "waited in vain for the request body", newNaive(anyFailure, func(*http.Request) (*http.Response, error) {
			return nil, errOpen
		})},
		{"ProbeOutlivesCancel", "waited in vain for any call", newNaive(anyFailure, closing(errOpen))},
		{"ProbeOutlivesPanic", "waited in vain for any call", newNaive(anyFailure, closing(errOpen))},
	})
}
