package httpguard

import (
	"fmt"
	"net/http"
	"strings"
)

// Finish is when a call counts as finished.
type Finish uint8

const (
	// Headers: when the response headers are there.
	Headers Finish = iota + 1
	// Body: when the response body has ended, one way or the other.
	Body
)

// String returns "headers" or "body".
func (f Finish) String() string {
	switch f {
	case Headers:
		return "headers"
	case Body:
		return "body"
	}
	return fmt.Sprintf("Finish(%d)", uint8(f))
}

// MarshalText returns the text of String, for JSON and logs.
func (f Finish) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// streams is the default for which responses are streams.
func streams(resp *http.Response) bool {
	values := resp.Header["Content-Type"] // as Get does, which first looks at how the name is written
	if len(values) == 0 {
		return false
	}
	kind, _, _ := strings.Cut(values[0], ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch kind {
	case "text/event-stream", "application/x-ndjson", "application/jsonl", "application/json-seq", "multipart/x-mixed-replace":
		return true
	}
	return kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+")
}
