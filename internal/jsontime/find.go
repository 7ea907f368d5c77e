package jsontime

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
)

// A finder finds the places of a document that cannot be decoded. encoding/json
// gives no path for an unknown key, none for what a type's own UnmarshalJSON
// says, and no index in any. So the finder asks it about one place at a time: it
// decodes documents that hold nothing but the way to that place.
type finder struct {
	into  reflect.Type // a fresh one is decoded into each time
	found []error
}

// find looks at value, which stands at path, and below. The document that holds
// nothing else is wrap(value), and err is why that cannot be decoded.
func (f *finder) find(value []byte, path string, wrap func(string) string, err error) {
	before := len(f.found)
	open, shut, parts := split(value)
	if open != "" && f.decode(wrap(open+shut)) == nil { // so only a part of value can be to blame
		for i, p := range parts {
			if len(f.found) > most {
				return
			}
			with := func(v string) string { return wrap(open + p.label + v + shut) }
			if err := f.decode(with(string(p.value))); err != nil {
				f.find(p.value, below(path, open, p.key, i), with, err)
			}
		}
	}
	if len(f.found) == before {
		f.found = append(f.found, &Error{Path: path, Err: reason(value, path, err)})
	}
}

func (f *finder) decode(doc string) error {
	return decode([]byte(doc), reflect.New(f.into).Interface())
}

// A part is a member of an object or an element of a list.
type part struct {
	key   string
	label string // the key as JSON, with its colon; "" in a list
	value json.RawMessage
}

// split takes an object or a list apart, in its order; open is "" for any other
// value. The value is known to be JSON.
func split(value []byte) (open, shut string, parts []part) {
	dec := json.NewDecoder(bytes.NewReader(value))
	switch t, _ := dec.Token(); t {
	case json.Delim('{'):
		open, shut = "{", "}"
	case json.Delim('['):
		open, shut = "[", "]"
	default:
		return "", "", nil
	}
	for dec.More() {
		var p part
		if open == "{" {
			key, _ := dec.Token()
			p.key, _ = key.(string)
			quoted, _ := json.Marshal(p.key)
			p.label = string(quoted) + ":"
		}
		if dec.Decode(&p.value) != nil {
			break
		}
		parts = append(parts, p)
	}
	return open, shut, parts
}

// below is the path of one part of what stands at path: key of an object, i of a
// list.
func below(path, open, key string, i int) string {
	switch {
	case open == "[":
		return path + "[" + strconv.Itoa(i) + "]"
	case !plain(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// plain reports whether key can stand in a path as it is.
func plain(key string) bool {
	for _, r := range key {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return key != ""
}
