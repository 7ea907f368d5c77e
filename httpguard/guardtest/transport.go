package guardtest

import "net/http"

type transportRule = rule[http.RoundTripper]

// TransportChecks returns the checks for wrappers of an http.RoundTripper. None
// needs a wrapper that retries; of one that does, they ask that it repeats only what
// may be repeated, and wastes nothing on the way.
func TransportChecks() []Check[http.RoundTripper] {
	return each(requestRules(), uploadRules(), contextRules(), responseRules(), bodyRules(), connectionRules(), endRules(), breakerRules())
}

func requestRules() []transportRule {
	return []transportRule{
		{
			name: "RequestUntouched",
			text: "RoundTrip must not modify the request: the caller, an outer retry and the base's own goroutines still read it.",
			run:  requestUntouched,
		}, {
			name: "ContentLengthKept", over: both(),
			text: "A body of known length arrives with that length and whole, and one of unknown length as such.",
			run:  contentLengthKept,
		}, {
			name: "GetBodyKept",
			text: "The base needs the request's GetBody to repeat what a closed connection swallowed. (golang/go#18241)",
			run:  getBodyKept,
		}, {
			name: "StaleConnectionRepeated", over: http1(),
			text: "net/http repeats a request with an Idempotency-Key on a fresh connection, if the kept one was closed before an answer.",
			run:  staleConnectionRepeated,
		}, {
			name: "PostSentOnce", over: both(),
			text: "A POST without an Idempotency-Key is not repeated when it was answered with 503: the order may have been placed. (go-retryablehttp#169)",
			run:  postSentOnce,
		}, {
			name: "AttemptsAreWhole", over: both(),
			text: "However often a request is sent, its body arrives whole each time. (failsafe-go#73)",
			run:  attemptsAreWhole,
		}, {
			name: "RedirectNotFollowed", over: both(),
			text: "RoundTrip must not interpret the response: redirects are the client's, which knows cookies and limits.",
			run:  redirectNotFollowed,
		},
	}
}

func uploadRules() []transportRule {
	return []transportRule{
		{
			name: "UploadStreamed", over: both(),
			text: "A body is sent while it is read, not gathered in memory first. (go-retryablehttp#145)",
			run:  uploadStreamed,
		}, {
			name: "ExpectContinueKept", over: both(),
			text: "With Expect: 100-continue no byte of the body is read before the server asks for it.",
			run:  expectContinueKept,
		}, {
			name: "BodyClosedAfterAnswer", over: both(),
			text: "RoundTrip must close the request body, be it after it has returned.",
			run:  bodyClosedAfterAnswer,
		}, {
			name: "BodyClosedWhenContextDone", over: both(),
			text: "RoundTrip must close the request body, also of a call that nobody waits for any more.",
			run:  bodyClosedWhenContextDone,
		}, {
			name: "BodyClosedWhenDialFails", over: both(),
			text: "RoundTrip must close the request body, also if there was no connection to send it on.",
			run:  bodyClosedWhenDialFails,
		},
	}
}

func contextRules() []transportRule {
	return []transportRule{
		{
			name: "ContextValuesKept",
			text: "What the caller put into the request's context is there in the base: traces, identities, priorities.",
			run:  contextValuesKept,
		}, {
			name: "CancelEndsCall", over: both(),
			text: "A caller that cancels gets an error that matches context.Canceled, and the server learns of it.",
			run:  cancelEndsCall,
		}, {
			name: "CancelEndsBody", over: both(),
			text: "A caller that cancels while it reads the body is not left waiting for more of it.",
			run:  cancelEndsBody,
		}, {
			name: "DeadlineEndsCall", over: both(),
			text: "The caller's deadline holds, and the error matches context.DeadlineExceeded.",
			run:  deadlineEndsCall,
		}, {
			name: "ClientTimeoutEndsCall", over: both(),
			text: "http.Client.Timeout ends a call that has no answer with an error that says Timeout.",
			run:  clientTimeoutEndsCall,
		}, {
			name: "ClientTimeoutEndsBody", over: both(),
			text: "http.Client.Timeout ends reading a body that does not come with an error that says Timeout.",
			run:  clientTimeoutEndsBody,
		}, {
			name: "RequestCancelKept", over: both(),
			text: "Closing Request.Cancel ends the call: http.Client itself used to rely on it, and old callers do.",
			run:  requestCancelKept,
		}, {
			name: "TraceKept", over: both(),
			text: "The caller's httptrace hooks are called, also for 103 Early Hints.",
			run:  traceKept,
		}, {
			name: "ContextLivesAsLongAsBody", over: both(),
			text: "A context derived for the call must not end when RoundTrip returns: the rest of the body would be lost. (failsafe-go#123, go-resty#1197)",
			run:  contextLivesAsLongAsBody,
		}, {
			name: "ContextReleased",
			text: "A context derived for the call ends with the body, be it read, closed or broken, and with a call that fails; else each call leaks one.",
			run:  contextReleased,
		},
	}
}

func responseRules() []transportRule {
	return []transportRule{
		{
			name: "StatusIsNoError", over: both(),
			text: "A response is returned as it came, whatever its status, and without an error; the last one is the caller's to read.",
			run:  statusIsNoError,
		}, {
			name: "ResponseKept", over: both(),
			text: "What the base says of its response stays as it is: protocol, lengths, encodings, header, and a Request.",
			run:  responseKept,
		}, {
			name: "TrailersArrive", over: both(),
			text: "Trailers, announced or not, are in Response.Trailer once the body was read: net/http writes them into the Response that it made.",
			run:  trailersArrive,
		}, {
			name: "EarlyAnswerArrives", over: both(),
			text: "A server may answer before it has read the whole body, and its answer arrives.",
			run:  earlyAnswerArrives,
		}, {
			name: "OddBaseSurvived",
			text: "A base that returns a nil body is one that answers, and one that returns nothing, or a response and an error, is one that fails; http.Client takes them so. None makes it panic.",
			run:  oddBaseSurvived,
		}, {
			name: "SecretsNotInErrors", over: both(),
			text: "The password in a URL is not in the text of an error, which will be logged. (go-retryablehttp#158)",
			run:  secretsNotInErrors,
		},
	}
}

func bodyRules() []transportRule {
	return []transportRule{
		{
			name: "EventsArriveAtOnce", over: both(),
			text: "RoundTrip returns at the headers, and what the server flushes can be read while the response goes on.",
			run:  eventsArriveAtOnce,
		}, {
			name: "CloseReachesBase",
			text: "Closing the body closes that of the base, whether or not it was read, and closing it twice does no harm.",
			run:  closeReachesBase,
		}, {
			name: "BrokenAnswerIsAnError", over: both(),
			text: "If the server breaks off, the call fails; if it does so within the body, reading fails, so that half an answer never looks whole.",
			run:  brokenAnswerIsAnError,
		}, {
			name: "ServesReverseProxy", over: both(),
			text: "It works as the Transport of an httputil.ReverseProxy, whose requests are those of a server, RequestURI and all.",
			run:  servesReverseProxy,
		}, {
			name: "UpgradeWritable", over: http1(),
			text: "The body of a 101 response can be written to, or no websocket gets through a reverse proxy. (opentelemetry-go-contrib#1329)",
			run:  upgradeWritable,
		}, {
			name: "UpgradeHalfCloses", over: http1(),
			text: "The body of a 101 response has CloseWrite if the base's has: a reverse proxy hands on the end of one direction with it.",
			run:  upgradeHalfCloses,
		},
	}
}

func connectionRules() []transportRule {
	return []transportRule{
		{
			name: "ConnectionsReused", over: both(),
			text: "A response that was read to its end leaves its connection to the next call.",
			run:  connectionsReused,
		}, {
			name: "EmptyAnswersKeepConnection", over: both(),
			text: "Answers to HEAD and those with 204 or 304 have no body: they keep their header and leave the connection to the next call.",
			run:  emptyAnswersKeepConnection,
		}, {
			name: "AbandonedResponsesClosed", over: http1(),
			text: "A response that the caller never sees is closed, or its connection is lost; with MaxConnsPerHost 1 the next attempt then waits for ever. (heimdall#45)",
			run:  abandonedResponsesClosed,
		}, {
			name: "CloseIdleConnectionsArrives", over: both(),
			text: "http.Client.CloseIdleConnections does nothing unless its Transport has the method: the wrapper needs it too.",
			run:  closeIdleConnectionsArrives,
		}, {
			name: "IdleConnectionsLeftAlone", over: both(),
			text: "A call that fails is no reason to close the idle connections of a shared base. (go-retryablehttp#98)",
			run:  idleConnectionsLeftAlone,
		},
	}
}

func endRules() []transportRule {
	return []transportRule{
		{
			name: "ErrorPassesOn",
			text: "The caller finds the base's error with errors.Is.",
			run:  errorPassesOn,
		}, {
			name: "PanicPassesOn",
			text: "A panic of the base arrives as it was, such as http.ErrAbortHandler, and the next call works.",
			run:  panicPassesOn,
		}, {
			name: "GoexitPassesOn",
			text: "A base that ends its goroutine, as a failing test does, ends it, and the next call works.",
			run:  goexitPassesOn,
		}, {
			name: "SafeForConcurrentUse", over: both(),
			text: "A RoundTripper is safe for concurrent use, and each call gets its own answer. (Best run with -race.)",
			run:  safeForConcurrentUse,
		},
	}
}

func breakerRules() []transportRule {
	return []transportRule{
		{
			name: "FailingStatusesTrip",
			text: "An upstream that answers everything with 500 is one that a breaker has to find sick. (gobreaker#121)",
			run:  failingStatusesTrip,
		}, {
			name: "NotFoundsDoNotTrip",
			text: "404 is an answer: those who ask for what is not there do not shut out everybody else.",
			run:  notFoundsDoNotTrip,
		}, {
			name: "CancelsDoNotTrip",
			text: "Callers that went away say nothing of the upstream. (gobreaker#105)",
			run:  cancelsDoNotTrip,
		}, {
			name: "BrokenUploadsDoNotTrip", over: both(),
			text: "Clients of a reverse proxy that break off their uploads say nothing of the upstream, or any of them could shut out all others.",
			run:  brokenUploadsDoNotTrip,
		}, {
			name: "RefusalWellFormed",
			text: "A refused call has either an error or a whole response, at once, and the caller's context is not blamed for it.",
			run:  refusalWellFormed,
		}, {
			name: "BodyClosedWhenRefused",
			text: "RoundTrip must close the request body, also if it refuses the call and the base, which would do it, never sees it. (quic-go#4873)",
			run:  bodyClosedWhenRefused,
		}, {
			name: "ProbeOutlivesCancel",
			text: "A probe whose caller goes away proves nothing: its place is given back, and the breaker closes once the upstream is well.",
			run:  probeOutlivesCancel,
		}, {
			name: "ProbeOutlivesPanic",
			text: "A probe that panics has ended: its place is given back, and the breaker closes once the upstream is well.",
			run:  probeOutlivesPanic,
		},
	}
}
