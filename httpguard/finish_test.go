package httpguard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// outcomes are what a breaker has been told, of calls that are over.
type outcomes struct{ success, failure, ignored, throttled int64 }

func outcomesOf(b *breaker.Breaker) outcomes {
	t := b.Snapshot().Totals
	return outcomes{t.Success, t.Failure, t.Ignored, t.Throttled}
}

// breaking is a base whose body ends with err.
func breaking(err error) baseFunc {
	return func(req *http.Request) (*http.Response, error) {
		closeBody(req.Body)
		resp := response(req, 200, "")
		resp.Body, resp.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("first"), errReader{err})), -1
		return resp, nil
	}
}

func TestFinishAt_BodyWaitsForItsEnd(t *testing.T) {
	reset := errors.New("connection reset")
	readAll := func(body io.ReadCloser) { _, _ = io.Copy(io.Discard, body) }
	for name, c := range map[string]struct {
		base  baseFunc
		end   func(io.ReadCloser)
		want  outcomes
		broke uint64
	}{
		"read to the end":          {answering(200, "body"), readAll, outcomes{success: 1}, 0},
		"closed before the end":    {answering(200, "body"), func(b io.ReadCloser) { _ = b.Close() }, outcomes{success: 1}, 0},
		"read and closed":          {answering(200, "body"), func(b io.ReadCloser) { readAll(b); _ = b.Close(); readAll(b); _ = b.Close() }, outcomes{success: 1}, 0},
		"breaks off":               {breaking(reset), readAll, outcomes{failure: 1}, 1},
		"breaks off, read on":      {breaking(reset), func(b io.ReadCloser) { readAll(b); readAll(b); _ = b.Close() }, outcomes{failure: 1}, 1},
		"closed before it breaks":  {breaking(reset), func(b io.ReadCloser) { _ = b.Close(); readAll(b) }, outcomes{success: 1}, 0},
		"a refusal further in":     {breaking(sluice.ErrRejected), readAll, outcomes{ignored: 1}, 0},
		"marked by somebody inner": {breaking(sluice.Mark(reset, sluice.Throttled)), readAll, outcomes{throttled: 1}, 1},
	} {
		for _, limits := range [][]Option{nil, {WithTotalTimeout(time.Hour), WithBodyIdleTimeout(time.Hour)}} {
			b := neverTrips(t)
			tr := newTransport(t, c.base, append(limits, WithBreaker(b), WithFinishAt(Body))...)
			resp, err := tr.RoundTrip(get(t.Context()))
			require.NoError(t, err)
			assert.Equal(t, outcomes{}, outcomesOf(b), name+": not yet")
			c.end(resp.Body)
			assert.Equal(t, c.want, outcomesOf(b), name)
			assert.Equal(t, c.broke, tr.Snapshot().BodyErrors, name)
			assert.Zero(t, tr.Snapshot().LeakedBodies)
		}
	}
}

// What is decided at the headers is decided.
func TestFinishAt_BodyDoesNotWaitForAllCalls(t *testing.T) {
	with := func(status int, kind string) baseFunc {
		return func(req *http.Request) (*http.Response, error) {
			resp := response(req, status, "body")
			resp.Header.Set("Content-Type", kind)
			return resp, nil
		}
	}
	head := get(t.Context())
	head.Method = http.MethodHead
	for name, c := range map[string]struct {
		base baseFunc
		req  *http.Request
		want outcomes
	}{
		"a failure":           {with(500, "text/plain"), get(t.Context()), outcomes{failure: 1}},
		"throttled":           {with(429, "text/plain"), get(t.Context()), outcomes{throttled: 1}},
		"no content":          {with(204, ""), get(t.Context()), outcomes{success: 1}},
		"not modified":        {with(304, ""), get(t.Context()), outcomes{success: 1}},
		"HEAD":                {with(200, "text/plain"), head, outcomes{success: 1}},
		"events":              {with(200, "text/event-stream; charset=utf-8"), get(t.Context()), outcomes{success: 1}},
		"events, in capitals": {with(200, "Text/Event-Stream"), get(t.Context()), outcomes{success: 1}},
		"lines of JSON":       {with(200, "application/x-ndjson"), get(t.Context()), outcomes{success: 1}},
		"gRPC":                {with(200, "application/grpc+proto"), get(t.Context()), outcomes{success: 1}},
		"an ordinary one":     {with(200, "application/json"), get(t.Context()), outcomes{}},
		"of unknown type":     {with(200, ""), get(t.Context()), outcomes{}},
		"of a similar type":   {with(200, "application/grpc-web"), get(t.Context()), outcomes{}},
	} {
		b := neverTrips(t)
		resp, err := newTransport(t, c.base, WithBreaker(b), WithFinishAt(Body)).RoundTrip(c.req)
		require.NoError(t, err)
		assert.Equal(t, c.want, outcomesOf(b), name)
		require.NoError(t, resp.Body.Close())
		total := outcomesOf(b)
		assert.EqualValues(t, 1, total.success+total.failure+total.throttled, name+": once")
	}

	b := neverTrips(t)
	resp, err := newTransport(t, with(200, "text/event-stream"), WithBreaker(b), WithFinishAt(Body),
		WithStreaming(func(resp *http.Response) bool { return resp.StatusCode == 206 })).RoundTrip(get(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, outcomes{}, outcomesOf(b), "the user's own say")
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
}

// A probe that waited for its body would keep the breaker half-open for as long as a
// download takes, or for ever if nobody closes it.
func TestC08_ProbeIsResolvedAtTheHeadersEvenAtBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBreaker(t, time.Second)
		tr := newTransport(t, breaking(io.ErrUnexpectedEOF), WithBreaker(b), WithFinishAt(Body))
		time.Sleep(time.Second)
		resp, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, breaker.Closed, b.State(), "with the body still open")
		_, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.EqualValues(t, 1, tr.Snapshot().BodyErrors, "what comes later is counted by itself")
		assert.Zero(t, b.Snapshot().Window.Failures)
	})
}

func TestFinishAt_CallersThatLeaveInTheBodyAreIgnored(t *testing.T) {
	stalled := baseFunc(func(req *http.Request) (*http.Response, error) {
		resp := response(req, 200, "")
		resp.Body, resp.ContentLength = &stalledBody{ctx: req.Context()}, -1
		return resp, nil
	})
	type own struct{ error }
	for name, c := range map[string]struct {
		leave func(ctx context.Context, req *http.Request) context.Context
		want  outcomes
		broke uint64
	}{
		"cancelled": {func(ctx context.Context, _ *http.Request) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx
		}, outcomes{ignored: 1}, 0},
		"cancelled with a cause": {func(ctx context.Context, _ *http.Request) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(own{io.EOF}) })
			return ctx
		}, outcomes{ignored: 1}, 0},
		"deadline of the caller": {func(ctx context.Context, _ *http.Request) context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			context.AfterFunc(ctx, cancel)
			return ctx
		}, outcomes{failure: 1}, 1},
		"limit further out": {func(ctx context.Context, _ *http.Request) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(sluice.ErrTimeout) })
			return ctx
		}, outcomes{failure: 1}, 1},
	} {
		for _, at := range []Finish{Headers, Body} {
			synctest.Test(t, func(t *testing.T) {
				b := neverTrips(t)
				tr := newTransport(t, stalled, WithBreaker(b), WithFinishAt(at), WithAttemptTimeout(time.Hour))
				req := get(t.Context())
				req = req.WithContext(c.leave(t.Context(), req))
				resp, err := tr.RoundTrip(req)
				require.NoError(t, err)
				_, err = io.ReadAll(resp.Body)
				require.Error(t, err)
				want := c.want
				if at == Headers {
					want = outcomes{success: 1}
				}
				assert.Equal(t, want, outcomesOf(b), name)
				assert.Equal(t, c.broke, tr.Snapshot().BodyErrors, name)
			})
		}
	}
}

// An upload that breaks off while the answer is already coming is the uploader's.
func TestFinishAt_BrokenUploadIsIgnored(t *testing.T) {
	b := neverTrips(t)
	tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
		resp := response(req, 200, "")
		resp.Body, resp.ContentLength = io.NopCloser(req.Body), -1 // an echo
		return resp, nil
	}), WithBreaker(b), WithFinishAt(Body))
	req, _ := post(t.Context(), "")
	req.Body, req.ContentLength = io.NopCloser(errReader{errors.New("the user closed the tab")}), 100
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
	assert.Equal(t, outcomes{ignored: 1}, outcomesOf(b))
	assert.Zero(t, tr.Snapshot().BodyErrors)
}

// The classifier is asked about the end of the body as about that of any call.
func TestFinishAt_ClassifierJudgesBrokenBodies(t *testing.T) {
	reset := errors.New("reset")
	b := neverTrips(t)
	tr := newTransport(t, breaking(reset), WithBreaker(b), WithFinishAt(Body), WithClassifier(func(_ *http.Request, resp *http.Response, err error) sluice.Outcome {
		if err != nil {
			assert.Nil(t, resp)
			assert.Equal(t, reset, err)
			return sluice.Throttled
		}
		return 0
	}))
	resp, err := tr.RoundTrip(get(t.Context()))
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	assert.Equal(t, reset, err, "and the reader gets the base's own error")
	assert.Equal(t, outcomes{throttled: 1}, outcomesOf(b))
}

// One that panics then does not keep the call from being settled.
func TestC21_PanicOfAClassifierAtTheEndOfTheBody(t *testing.T) {
	b := neverTrips(t)
	tr := newTransport(t, breaking(io.ErrUnexpectedEOF), WithBreaker(b), WithFinishAt(Body), WithClassifier(func(_ *http.Request, _ *http.Response, err error) sluice.Outcome {
		if err != nil {
			panic("hook")
		}
		return 0
	}))
	resp, err := tr.RoundTrip(get(t.Context()))
	require.NoError(t, err)
	assert.PanicsWithValue(t, "hook", func() { _, _ = io.ReadAll(resp.Body) })
	assert.Equal(t, outcomes{failure: 1}, outcomesOf(b))
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, outcomes{failure: 1}, outcomesOf(b))
}

// A classifier may read the body and put another one in its place.
func TestFinishAt_ClassifierThatReadsTheBodyHasTheLastWord(t *testing.T) {
	for _, o := range []sluice.Outcome{0, sluice.Success, sluice.Failure} {
		b := neverTrips(t)
		tr := newTransport(t, answering(200, `{"errors": []}`), WithBreaker(b), WithFinishAt(Body), WithClassifier(func(_ *http.Request, resp *http.Response, _ error) sluice.Outcome {
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			resp.Body = io.NopCloser(strings.NewReader(string(body)))
			return o
		}))
		resp, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		want := outcomes{success: 1}
		if o == sluice.Failure {
			want = outcomes{failure: 1}
		}
		assert.Equal(t, want, outcomesOf(b), "settled at the headers: the body is over")
		assert.Equal(t, `{"errors": []}`, readAll(t, resp))
		assert.Equal(t, want, outcomesOf(b))
	}
}

// A response that its caller forgot would hold its permit for ever.
func TestC08_LeakedBodiesAreFound(t *testing.T) {
	leaks := 20
	for name, opts := range map[string][]Option{"": nil, " with limits": {WithTotalTimeout(time.Hour), WithBodyIdleTimeout(time.Hour)}} {
		b := neverTrips(t)
		var released []context.Context
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			if req.Context() != t.Context() {
				released = append(released, req.Context())
			}
			return response(req, 200, "never read"), nil
		}), append(opts, WithBreaker(b), WithFinishAt(Body), WithClassifier(func(_ *http.Request, _ *http.Response, err error) sluice.Outcome {
			assert.NoError(t, err, "foreign code is not run by the garbage collector")
			return 0
		}))...)
		for range leaks {
			_, err := tr.RoundTrip(get(t.Context()))
			require.NoError(t, err)
		}
		kept, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		for tr.Snapshot().LeakedBodies < uint64(leaks) { // one that is never found would time the test out
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		for outcomesOf(b).ignored < int64(leaks) {
			time.Sleep(time.Millisecond)
		}
		assert.Equal(t, outcomes{ignored: int64(leaks)}, outcomesOf(b), "leaks"+name)
		assert.Equal(t, "never read", readAll(t, kept), "one that is in use is left alone")
		assert.Equal(t, outcomes{success: 1, ignored: int64(leaks)}, outcomesOf(b))
		assert.EqualValues(t, leaks, tr.Snapshot().LeakedBodies)
		assert.Zero(t, tr.Snapshot().BodyErrors)
		for _, ctx := range released {
			assert.ErrorIs(t, ctx.Err(), context.Canceled)
		}
	}
}

// A body that is over holds nothing any more, though its caller keeps it: another call's
// leak is found all the same.
func TestC08_BodiesThatAreOverHideNoLeak(t *testing.T) {
	tr := newTransport(t, answering(200, "body"), WithBreaker(neverTrips(t)), WithFinishAt(Body))
	var kept []io.ReadCloser
	for range 10 {
		resp, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		kept = append(kept, resp.Body)
		_, err = tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
	}
	for tr.Snapshot().LeakedBodies < 10 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	runtime.KeepAlive(kept)
}

// A Read that fails because its body is closed meanwhile is no fault of the upstream.
func TestFinishAt_ClosingDuringAReadBreaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := neverTrips(t)
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			resp := response(req, 200, "")
			resp.Body, resp.ContentLength = &interruptedBody{closed: make(chan struct{})}, -1
			return resp, nil
		}), WithBreaker(b), WithFinishAt(Body))
		resp, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		read := make(chan error, 1)
		go func() {
			_, err := resp.Body.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.ErrBodyReadAfterClose, <-read)
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
		assert.Zero(t, tr.Snapshot().BodyErrors)
	})
}

// interruptedBody ends a Read under way by Close, before that returns.
type interruptedBody struct{ closed chan struct{} }

func (b *interruptedBody) Read([]byte) (int, error) {
	<-b.closed
	return 0, http.ErrBodyReadAfterClose
}

func (b *interruptedBody) Close() error {
	close(b.closed)
	synctest.Wait()
	return nil
}

// What a fallback replaces is dropped by us, and that is no error of the body.
func TestFallback_DroppedBodiesAreNoErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			resp := response(req, 503, "")
			resp.Body, resp.ContentLength = &stalledBody{ctx: req.Context()}, -1
			return resp, nil
		}), everything(neverTrips(t))...)
		tr.fallback.call = func(req *http.Request, _ error) (*http.Response, error) { return Respond(req, 200, nil, nil), nil }
		_, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Zero(t, tr.Snapshot().BodyErrors)
	})
}

// The same with net/http's own responses.
func TestC08_LeakedBodiesAreFoundOverLoopback(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		tr := newTransport(t, base, WithBreakers(newGroup(t), ByHost), WithFinishAt(Body))
		for range 5 {
			_, err := tr.RoundTrip(getFrom(t, t.Context(), srv.URL))
			require.NoError(t, err)
		}
		for tr.Snapshot().LeakedBodies < 5 {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		base.CloseIdleConnections()
		srv.CloseClientConnections()
	})
}

// However many read, close, drop and cancel: each call is settled once.
func TestConservation_EveryBodyIsSettledOnce(t *testing.T) {
	const callers, calls = 8, 100
	b := neverTrips(t)
	tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("X-End") == "break" {
			return breaking(io.ErrUnexpectedEOF)(req)
		}
		return answering(200, "body")(req)
	}), WithBreaker(b), WithFinishAt(Body), WithTotalTimeout(time.Hour), WithBodyIdleTimeout(time.Hour))
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range calls {
				req := get(t.Context())
				if i%4 == 0 {
					req.Header.Set("X-End", "break")
				}
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				switch i % 4 {
				case 0, 1:
					_, _ = io.Copy(io.Discard, resp.Body)
				case 2: // at the same time
					var both sync.WaitGroup
					both.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
					both.Go(func() { _ = resp.Body.Close() })
					both.Wait()
				}
				if i%4 != 3 {
					_ = resp.Body.Close()
				}
			}
		})
	}
	all.Wait()
	const each = callers * calls / 4
	for tr.Snapshot().LeakedBodies < each || outcomesOf(b).ignored < each {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	assert.Equal(t, outcomes{success: 2 * each, failure: each, ignored: each}, outcomesOf(b))
	assert.EqualValues(t, each, tr.Snapshot().BodyErrors)
}

// Slow is what took long altogether.
func TestFinishAt_BodyCountsTheWholeTime(t *testing.T) {
	for at, slow := range map[Finish]int64{Headers: 0, Body: 1} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreaker(t, breaker.WithSlowCallRatio(time.Second, 0.5))
			resp, err := newTransport(t, answering(200, "body"), WithBreaker(b), WithFinishAt(at)).RoundTrip(get(t.Context()))
			require.NoError(t, err)
			time.Sleep(time.Second + 1)
			assert.Equal(t, "body", readAll(t, resp))
			assert.Equal(t, slow, b.Snapshot().Window.Slow, at)
		})
	}
}

func TestFinish_Text(t *testing.T) {
	for f, want := range map[Finish]string{0: "Finish(0)", Headers: "headers", Body: "body", 7: "Finish(7)"} {
		text, err := f.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
