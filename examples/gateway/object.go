package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// complaints are all that is wrong with a document.
type complaints []error

// add complains about the value at path; "" is the document itself.
func (c *complaints) add(path, format string, args ...any) {
	if path != "" {
		path += ": "
	}
	*c = append(*c, errors.New(path+fmt.Sprintf(format, args...)))
}

// An object is a JSON object that is read key by key: each value must be of the type
// that is asked for, and at the end no key may be left. encoding/json alone takes
// unknown keys, repeated ones and null in silence, and stops at the first fault.
//
// An object that is not there has no keys, so what is read keeps its default.
type object struct {
	path    string // such as services.orders
	members []member
	to      *complaints
}

// A member is a key that has not been read yet, with its value.
type member struct {
	key   string
	value json.RawMessage
}

// openDocument opens the object that data must be, and reports whether it is one.
func openDocument(data []byte, to *complaints) (*object, bool) {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		to.add("", "%s", misspelt(data, err))
		return nil, false
	}
	return openObject("", data, to)
}

// misspelt says where data stops being JSON.
func misspelt(data []byte, err error) string {
	var bad *json.SyntaxError
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return "the document is empty"
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return "line 1: a byte order mark stands before the document; save it without"
	case !errors.As(err, &bad):
		return err.Error()
	}
	before := data[:min(max(bad.Offset-1, 0), int64(len(data)))]
	return fmt.Sprintf("line %d: %v", 1+bytes.Count(before, []byte("\n")), err)
}

// openObject opens the object at path that data, which is JSON, must be, and reports
// whether it is one.
func openObject(path string, data []byte, to *complaints) (*object, bool) {
	o := &object{path: path, to: to}
	dec := json.NewDecoder(bytes.NewReader(data))
	if first, _ := dec.Token(); first != json.Delim('{') {
		to.add(path, "%s is not an object", brief(data))
		return o, false
	}
	seen := map[string]bool{}
	for dec.More() {
		key, _ := dec.Token()
		var m member
		m.key, _ = key.(string)
		if dec.Decode(&m.value) != nil {
			break
		}
		if seen[m.key] {
			to.add(o.at(m.key), "stands there twice")
			continue
		}
		seen[m.key] = true
		o.members = append(o.members, m)
	}
	return o, true
}

// at is the path of key.
func (o *object) at(key string) string {
	special := func(r rune) bool {
		return !(r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}
	if key == "" || strings.ContainsFunc(key, special) {
		return o.path + "[" + strconv.Quote(key) + "]"
	}
	return strings.TrimPrefix(o.path+"."+key, ".")
}

// take returns the value of key, nil if there is none, and takes it off the list.
func (o *object) take(key string) json.RawMessage {
	for i, m := range o.members {
		if m.key == key {
			o.members = slices.Delete(o.members, i, i+1)
			return m.value
		}
	}
	return nil
}

// text reads a text.
func (o *object) text(key string, into *string) bool { return o.read(key, into, "text in quotes") }

// required reads a text that must be there; what says what it is.
func (o *object) required(key, what string, into *string) bool {
	if !slices.ContainsFunc(o.members, func(m member) bool { return m.key == key }) {
		o.to.add(o.at(key), "is missing: %s", what)
		return false
	}
	return o.text(key, into)
}

// whole reads a whole number that is not below least, 0 or 1.
func (o *object) whole(key string, into *int, least int) {
	n := *into
	if o.read(key, &n, "a whole number") && enough(o, key, n, least) {
		*into = n
	}
}

// duration reads a time that is not below least, 0 or 1.
func (o *object) duration(key string, into *time.Duration, least time.Duration) {
	const wanted = `a duration in text, such as "250ms" or "1m30s"`
	var text string
	if !o.read(key, &text, wanted) {
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		o.to.add(o.at(key), "%q is not %s", text, wanted)
	} else if enough(o, key, d, least) {
		*into = d
	}
}

func enough[T int | time.Duration](o *object, key string, v, least T) bool {
	switch {
	case v >= least:
		return true
	case least > 0:
		o.to.add(o.at(key), "%v is not positive", v)
	default:
		o.to.add(o.at(key), "%v is negative", v)
	}
	return false
}

// read decodes the value of key, and reports whether that is there and as wanted.
func (o *object) read(key string, into any, wanted string) bool {
	raw := o.take(key)
	if raw == nil {
		return false
	}
	if string(raw) == "null" || json.Unmarshal(raw, into) != nil {
		o.to.add(o.at(key), "%s is not %s", brief(raw), wanted)
		return false
	}
	return true
}

// itself reads an object that decodes itself over what is there, strictly: each of
// its complaints begins with where in the object it belongs. It reports whether that
// is there and as it must be.
func (o *object) itself(key string, into json.Unmarshaler) bool {
	raw := o.take(key)
	if raw == nil {
		return false
	}
	if raw[0] != '{' {
		o.to.add(o.at(key), "%s is not an object", brief(raw))
		return false
	}
	wrong := each(into.UnmarshalJSON(raw))
	for _, err := range wrong {
		*o.to = append(*o.to, fmt.Errorf("%s.%w", o.at(key), err))
	}
	return len(wrong) == 0
}

// each returns the errors that are joined in err.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// object opens the object at key.
func (o *object) object(key string) *object {
	if raw := o.take(key); raw != nil {
		child, _ := openObject(o.at(key), raw, o.to)
		return child
	}
	return &object{path: o.at(key), to: o.to}
}

// objects opens all objects that are left, in order.
func (o *object) objects() iter.Seq2[string, *object] {
	return func(yield func(string, *object) bool) {
		for len(o.members) > 0 {
			key := o.members[0].key
			child, ok := openObject(o.at(key), o.take(key), o.to)
			if ok && !yield(key, child) {
				return
			}
		}
	}
}

// end complains about the keys that nobody has asked for.
func (o *object) end() {
	for _, m := range o.members {
		o.to.add(o.at(m.key), "unknown key")
	}
}

// brief is a value as a complaint quotes it.
func brief(value []byte) string {
	const most = 64
	var one bytes.Buffer
	if json.Compact(&one, value) != nil || one.Len() <= most {
		return one.String()
	}
	return strings.ToValidUTF8(one.String()[:most], "") + "…"
}
