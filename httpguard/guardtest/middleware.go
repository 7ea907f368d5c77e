package guardtest

import "net/http"

type handlerRule = rule[http.Handler]

// MiddlewareChecks returns the checks for wrappers of an http.Handler. In all of them
// the wrapper stands inside an http.ServeMux, so that requests have a Pattern.
func MiddlewareChecks() []Check[http.Handler] {
	return each(writerRules(), answerRules(), arrivalRules(), leavingRules(), refusalRules())
}

func writerRules() []handlerRule {
	return []handlerRule{
		{
			name: "WriterHidesNothing", over: both(),
			text: "What the server's ResponseWriter can do, the handler's can: Flusher, FlushError, Hijacker, Pusher, io.ReaderFrom, io.StringWriter. (traefik#460)",
			run:  writerHidesNothing,
		}, {
			name: "WriterFakesNothing", over: both(),
			text: "What the server's ResponseWriter cannot do, the handler's does not pretend to: code that asks for a Hijacker takes the wrong branch.",
			run:  writerFakesNothing,
		}, {
			name: "ControllerWorks", over: both(),
			text: "An http.ResponseController does through the wrapper what it does without: deadlines, full duplex, flushing.",
			run:  controllerWorks,
		}, {
			name: "ControllerWorksThroughUnwrap", over: both(),
			text: "It also does so if the writer outside the wrapper has nothing but Unwrap. (coraza-caddy#326)",
			run:  controllerWorksThroughUnwrap,
		}, {
			name: "HijackWorks", over: http1(),
			text: "A handler can take over the connection, by assertion and by http.ResponseController, and talk on it.",
			run:  hijackWorks,
		}, {
			name: "FlushErrorArrives",
			text: "An error of flushing reaches the handler: a wrapper with Flush and no FlushError swallows it.",
			run:  flushErrorArrives,
		}, {
			name: "WriteErrorArrives",
			text: "An error of writing reaches the handler, with the number of bytes written.",
			run:  writeErrorArrives,
		}, {
			name: "ReadFromArrives", over: http1(),
			text: "io.Copy to the writer reaches ReadFrom of the server's, which sends files without copying them.",
			run:  readFromArrives,
		}, {
			name: "HeaderShared",
			text: "There is one header map: what the handler sets is seen outside, and what was set outside is seen in the handler.",
			run:  headerShared,
		},
	}
}

func answerRules() []handlerRule {
	return []handlerRule{
		{
			name: "AnswerUntouched", over: both(),
			text: "Status, header and body arrive as the handler wrote them, nothing added, also for HEAD.",
			run:  answerUntouched,
		}, {
			name: "EmptyAnswerIs200", over: both(),
			text: "A handler that writes nothing has answered with 200 and no body.",
			run:  emptyAnswerIs200,
		}, {
			name: "FirstStatusWins", over: both(),
			text: "The first WriteHeader counts, and one after the body has begun changes nothing.",
			run:  firstStatusWins,
		}, {
			name: "EarlyHintsArrive", over: both(),
			text: "103 may be sent, more than once, before the status, which is 200 if none is said.",
			run:  earlyHintsArrive,
		}, {
			name: "HandlerTrailersArrive", over: both(),
			text: "Trailers, announced or not, arrive: they are set after the body, in the same header map.",
			run:  handlerTrailersArrive,
		}, {
			name: "HandlerEventsArriveAtOnce", over: both(),
			text: "What the handler flushes is sent while the handler runs. (go-zero#3178)",
			run:  handlerEventsArriveAtOnce,
		},
	}
}

func arrivalRules() []handlerRule {
	return []handlerRule{
		{
			name: "OuterRequestUntouched",
			text: "The request is not modified, other than by the handler: the server and outer wrappers still use it.",
			run:  outerRequestUntouched,
		}, {
			name: "PatternSeenInside",
			text: "The handler finds Pattern and path values of the mux that the wrapper stands in.",
			run:  patternSeenInside,
		}, {
			name: "PatternSeenOutside",
			text: "After a mux inside the wrapper has chosen, whoever stands outside finds the Pattern in the request: a copy of the request would keep it.",
			run:  patternSeenOutside,
		}, {
			name: "ServerContextKept", over: both(),
			text: "The handler finds what the server and outer wrappers have put into the request's context.",
			run:  serverContextKept,
		}, {
			name: "UploadArrivesAtOnce", over: both(),
			text: "The handler can read what has been sent of a body while there is more to come.",
			run:  uploadArrivesAtOnce,
		}, {
			name: "FullDuplexWorks", over: both(),
			text: "The handler can read the body and write the answer by turns.",
			run:  fullDuplexWorks,
		}, {
			name: "ExpectContinueLeftToHandler", over: both(),
			text: "With Expect: 100-continue the client is asked for its body when the handler reads it, not before.",
			run:  expectContinueLeftToHandler,
		}, {
			name: "TooLargeClosesConnection", over: http1(),
			text: "A body that is too large for http.MaxBytesReader ends the connection, or what is left of it must be read: net/http looks for its own writer there. (golang/go#73754)",
			run:  tooLargeClosesConnection,
		}, {
			name: "RequestTrailersArrive", over: both(),
			text: "Trailers of the request are there once the handler has read the body.",
			run:  requestTrailersArrive,
		}, {
			name: "MultipartFilesRemoved", over: both(),
			text: "The server removes the files of a multipart form from the request that it made: those of a copy stay on disk for ever. (golang/go#58809)",
			run:  multipartFilesRemoved,
		},
	}
}

func leavingRules() []handlerRule {
	return []handlerRule{
		{
			name: "HandlerPanicPassesOn",
			text: "A panic of the handler arrives outside as it was, such as http.ErrAbortHandler.",
			run:  handlerPanicPassesOn,
		}, {
			name: "HandlerGoexitPassesOn",
			text: "A handler that ends its goroutine, as a failing test does, ends it, and the next request is served.",
			run:  handlerGoexitPassesOn,
		}, {
			name: "AbortAborts", over: both(),
			text: "http.ErrAbortHandler breaks the answer off, so that half of one never looks whole.",
			run:  abortAborts,
		}, {
			name: "ClientGoneEndsContext", over: both(),
			text: "A client that goes away ends the context of the handler's request.",
			run:  clientGoneEndsContext,
		}, {
			name: "PanicsLeakNothing",
			text: "A handler that panics because its client is gone has ended, and no place stays taken. (grafana#131859)",
			run:  panicsLeakNothing,
		}, {
			name: "HandlerSafeForConcurrentUse", over: both(),
			text: "Requests are served at the same time, and each gets its own answer. (Best run with -race.)",
			run:  handlerSafeForConcurrentUse,
		},
	}
}

func refusalRules() []handlerRule {
	return []handlerRule{
		{
			name: "FailingHandlerTrips",
			text: "A handler that answers everything with 500 is one that a breaker has to find sick: it must see the status. (gobreaker#121)",
			run:  failingHandlerTrips,
		}, {
			name: "NotFoundAnswersDoNotTrip",
			text: "404 is an answer: those who ask for what is not there do not shut out everybody else.",
			run:  notFoundAnswersDoNotTrip,
		}, {
			name: "GoneClientsDoNotTrip",
			text: "A handler that fails because its client is gone says nothing of its health. (traefik#13879)",
			run:  goneClientsDoNotTrip,
		}, {
			name: "RefusalIs503",
			text: "Overload and an open breaker are 503; 429 tells a client that it did too much, and it did not.",
			run:  refusalIs503,
		}, {
			name: "RefusalSaysWhenToRetry",
			text: "Retry-After is a whole number of seconds, at least 1. (traefik#8573)",
			run:  refusalSaysWhenToRetry,
		}, {
			name: "RefusalNotStored",
			text: "A cache must not keep a refusal and hand it to others: Cache-Control says no-store.",
			run:  refusalNotStored,
		}, {
			name: "RefusalTellsNothing",
			text: "The answer tells a stranger nothing of what stands inside.",
			run:  refusalTellsNothing,
		}, {
			name: "RefusalLeavesBodyUnread",
			text: "A refused request is refused at once, without reading what it brings.",
			run:  refusalLeavesBodyUnread,
		}, {
			name: "HandlerProbeOutlivesPanic",
			text: "A probe that panics has ended: its place is given back, and the breaker closes once the handler is well.",
			run:  handlerProbeOutlivesPanic,
		}, {
			name: "HandlerProbeOutlivesClient",
			text: "A probe whose client goes away proves nothing: its place is given back, and the breaker closes once the handler is well.",
			run:  handlerProbeOutlivesClient,
		},
	}
}
