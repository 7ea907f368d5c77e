package jsontime

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// most is how many complaints of one document are told.
const most = 100

// An Error is one complaint about one place in a JSON document.
type Error struct {
	Path string // such as rules[2].open_for; "" is the document itself
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return e.Path + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Strict decodes data, one JSON document, into what into points to. As with
// encoding/json, absent keys keep what was there. Unlike it, Strict refuses unknown
// keys, also those that differ from a known one by their case alone, keys that stand
// twice in one object, and anything after the document.
//
// All complaints are joined, up to a hundred, each an *Error with the path of its
// key, also where a nested type decodes itself with Strict. After an error what
// into points to may be half filled.
func Strict(data []byte, into any) error {
	if !json.Valid(data) {
		return &Error{Err: syntax(data)}
	}
	if errs := checkKeys(data, reflect.TypeOf(into)); errs != nil {
		return join(errs)
	}
	err := decode(data, into)
	if err == nil {
		return nil
	}
	t := reflect.TypeOf(into)
	if t == nil || t.Kind() != reflect.Pointer {
		return err
	}
	f := finder{into: t.Elem()}
	f.find(data, "", func(value string) string { return value }, err)
	return join(f.found)
}

// join tells of the first most complaints, and that there are more.
func join(found []error) error {
	if len(found) > most {
		found = append(found[:most:most], &Error{Err: fmt.Errorf("and more, beside these %d", most)})
	}
	return errors.Join(found...)
}

// decode is encoding/json without unknown keys. data is one document.
func decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// syntax says where data stops being a JSON document.
func syntax(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	err := dec.Decode(&first)
	var bad *json.SyntaxError
	switch {
	case err == nil:
		return fmt.Errorf("unexpected %s after the document", brief(bytes.TrimSpace(data[dec.InputOffset():])))
	case errors.Is(err, io.EOF):
		return errors.New("the document is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the document ends too early")
	case errors.As(err, &bad):
		before := data[:min(max(bad.Offset-1, 0), int64(len(data)))]
		return fmt.Errorf("line %d: %w", 1+bytes.Count(before, []byte("\n")), err)
	}
	return err
}

// reason is what is wrong with the value at path, in the words of a document
// rather than of Go.
func reason(value []byte, path string, err error) error {
	var inner *Error // of a type within that decodes itself with Strict
	if errors.As(err, &inner) && strings.HasSuffix(path, inner.Path) {
		return inner.Err
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s is not %s", brief(value), wanted(wrong.Type))
	}
	if strings.HasPrefix(err.Error(), "json: unknown field") {
		return errors.New("unknown key")
	}
	return err
}

// wanted is what encoding/json takes for a t.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "text in quotes"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer that fits " + t.Kind().String()
	case reflect.Float32, reflect.Float64:
		return "a number that fits " + t.Kind().String()
	case reflect.String:
		return "text in quotes"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a " + t.String()
}
