package jsontime

import (
	"bytes"
	"encoding/json"
	"errors"
)

// repeated complains of every key that stands twice in one object: encoding/json
// would take the last one and say nothing. The value is known to be JSON.
func repeated(value []byte) []error {
	r := repeats{dec: json.NewDecoder(bytes.NewReader(value))}
	r.dec.UseNumber() // else Token refuses 1e999, which may stand where nobody reads it
	if err := r.walk(""); err != nil {
		return append(r.found, &Error{Err: err})
	}
	return r.found
}

type repeats struct {
	dec   *json.Decoder
	found []error
}

// walk goes through the value that comes next, which stands at path.
func (r *repeats) walk(path string) error {
	open, err := r.dec.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return err
	}
	seen := map[string]bool{}
	for i := 0; r.dec.More() && len(r.found) <= most; i++ {
		here := path
		if open == json.Delim('[') {
			here = below(path, "[", "", i)
		} else {
			token, err := r.dec.Token()
			if err != nil {
				return err
			}
			key, _ := token.(string)
			here = below(path, "{", key, i)
			if seen[key] {
				r.found = append(r.found, &Error{Path: here, Err: errors.New("the key stands there twice")})
			}
			seen[key] = true
		}
		if err := r.walk(here); err != nil {
			return err
		}
	}
	if len(r.found) > most {
		return nil // they will do
	}
	_, err = r.dec.Token() // the end of the list or the object
	return err
}
