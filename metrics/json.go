package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MarshalJSON writes the views of all Sources in order of name, as one object:
// {"orders": view, …}. A view that cannot be had stands as {"error": "…"}, so
// what comes out is always valid, and the error is always nil.
func (s *Set) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, e := range s.list() {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(quote(e.name))
		out.WriteByte(':')
		view, err := marshalView(e.source)
		if err != nil {
			s.faults.Add(1)
			view = fmt.Appendf(nil, `{"error":%s}`, quote(err.Error()))
		}
		out.Write(view)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// String returns what MarshalJSON writes. With it a Set is an expvar.Var, for
// those who want to publish it.
func (s *Set) String() string {
	out, _ := s.MarshalJSON() // the error is always nil
	return string(out)
}

// marshalView turns a panic of the Source, or of what it returned, into an error.
func marshalView(src Source) (view []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return json.Marshal(src.View())
}

// quote is json.Marshal of text, which cannot fail.
func quote(text string) []byte {
	quoted, _ := json.Marshal(text)
	return quoted
}
