package jsontime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// checkKeys complains of every key of value, which will be decoded into an into,
// that encoding/json would take and say nothing: one that stands twice in an object,
// of which the last one would win, and one in another case than the field's, which
// could so stand beside it. The value is known to be JSON.
func checkKeys(value []byte, into reflect.Type) []error {
	c := keyCheck{dec: json.NewDecoder(bytes.NewReader(value))}
	c.dec.UseNumber() // else Token refuses 1e999, which may stand where nobody reads it
	if err := c.walk("", into); err != nil {
		return append(c.found, &Error{Err: err})
	}
	return c.found
}

type keyCheck struct {
	dec   *json.Decoder
	found []error
}

// walk goes through the value that comes next, which stands at path and is decoded
// into a t, or into what only its own UnmarshalJSON knows if t is nil.
func (c *keyCheck) walk(path string, t reflect.Type) error {
	open, err := c.dec.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return err
	}
	t = plainly(t)
	seen := map[string]bool{}
	for i := 0; c.dec.More() && len(c.found) <= most; i++ {
		here, within := path, elem(t)
		if open == json.Delim('[') {
			here = below(path, "[", "", i)
		} else {
			token, err := c.dec.Token()
			if err != nil {
				return err
			}
			key, _ := token.(string)
			here = below(path, "{", key, i)
			if seen[key] {
				c.complain(here, errors.New("the key stands there twice"))
			}
			seen[key] = true
			if t != nil && t.Kind() == reflect.Struct {
				var name string
				if name, within = field(t, key); name != "" && name != key {
					c.complain(here, fmt.Errorf("unknown key; it is written %q", name))
				}
			}
		}
		if err := c.walk(here, within); err != nil {
			return err
		}
	}
	if len(c.found) > most {
		return nil // they will do
	}
	_, err = c.dec.Token() // the end of the list or the object
	return err
}

func (c *keyCheck) complain(path string, err error) {
	c.found = append(c.found, &Error{Path: path, Err: err})
}

// plainly is what t points to, or nil if a t decodes itself: then it has its own
// call of Strict, or its own rules.
func plainly(t reflect.Type) reflect.Type {
	for t != nil {
		if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			return nil
		}
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	return t
}

// elem is what the values of a list or a map are, or nil.
func elem(t reflect.Type) reflect.Type {
	if t != nil {
		switch t.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			return t.Elem()
		}
	}
	return nil
}

// field finds the field of the struct t that encoding/json decodes key into: its
// name in JSON, and its type. The name is "" if there is none.
func field(t reflect.Type, key string) (name string, of reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" && !f.Anonymous {
			tag = f.Name
		}
		if !f.IsExported() || tag == "-" || !strings.EqualFold(tag, key) {
			continue
		}
		if name, of = tag, f.Type; name == key {
			break
		}
	}
	return name, of
}
