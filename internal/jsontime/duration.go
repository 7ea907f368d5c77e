package jsontime

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Auto is the AutoDuration that stands for "work it out from the others".
const Auto = -1

// A Duration is a time.Duration that is text in JSON, as time.Duration's String
// writes it and time.ParseDuration reads it: "250ms", "1h30m0s". It refuses to
// read a bare number and anything negative; null leaves it as it was.
type Duration time.Duration

// MarshalJSON writes any value, also one that UnmarshalJSON would refuse: to
// complain about it is the owner's Validate.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON leaves d unchanged when it returns an error.
func (d *Duration) UnmarshalJSON(data []byte) error {
	return read(data, "", (*time.Duration)(d))
}

// An AutoDuration is a Duration that may also be Auto, which is "auto" in JSON.
type AutoDuration time.Duration

// MarshalJSON writes any value, as Duration's does.
func (d AutoDuration) MarshalJSON() ([]byte, error) {
	if d == Auto {
		return []byte(`"auto"`), nil
	}
	return Duration(d).MarshalJSON()
}

// UnmarshalJSON leaves d unchanged when it returns an error.
func (d *AutoDuration) UnmarshalJSON(data []byte) error {
	return read(data, "auto", (*time.Duration)(d))
}

// read sets d to the duration in data, or to Auto if the text there is auto and
// auto is not "".
func read(data []byte, auto string, d *time.Duration) error {
	if string(data) == "null" {
		return nil
	}
	want := `a duration in text such as "250ms", "1.5s" or "1h30m"`
	if auto != "" {
		want += fmt.Sprintf(", or %q", auto)
	}
	if strings.IndexByte("-0123456789", data[0]) >= 0 {
		return fmt.Errorf("%s is a bare number, want %s", brief(data), want)
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		return fmt.Errorf("%s is not %s", brief(data), want)
	}
	if auto != "" && text == auto {
		*d = Auto
		return nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil { // also on overflow, which it does not tell apart
		return fmt.Errorf("%s is not %s; the longest is 2562047h", brief(data), want)
	}
	if parsed < 0 {
		return fmt.Errorf("%s is negative, want %s", brief(data), want)
	}
	*d = parsed
	return nil
}

// brief is a value as an error message quotes it.
func brief(data []byte) string {
	const most = 64
	if len(data) <= most {
		return string(data)
	}
	return strings.ToValidUTF8(string(data[:most]), "") + "…"
}
