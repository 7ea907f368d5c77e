package jsontime

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// level is an enum of a config.
type level int

func (l *level) UnmarshalText(text []byte) error {
	if string(text) != "high" {
		return fmt.Errorf("level %q is not high", text)
	}
	*l = 1
	return nil
}

// step has a decoder of its own, as a rule of a breaker has.
type step struct {
	Share float64
	For   time.Duration
}

type stepJSON struct {
	Share float64  `json:"share"`
	For   Duration `json:"for"`
}

func (s *step) UnmarshalJSON(data []byte) error {
	in := stepJSON{Share: s.Share, For: Duration(s.For)}
	if err := Strict(data, &in); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	*s = step{Share: in.Share, For: time.Duration(in.For)}
	return nil
}

// config decodes as the package comment tells.
type config struct {
	Window time.Duration
	Lease  time.Duration
	Min    int
	Level  level
	Stages []int
	Steps  []step
	Limits map[string]uint8
}

type configJSON struct {
	Window Duration         `json:"window"`
	Lease  AutoDuration     `json:"lease"`
	Min    int              `json:"min"`
	Level  level            `json:"level"`
	Stages []int            `json:"stages"`
	Steps  []step           `json:"steps"`
	Limits map[string]uint8 `json:"limits"`
}

func (c *config) UnmarshalJSON(data []byte) error {
	in := configJSON{Window: Duration(c.Window), Lease: AutoDuration(c.Lease), Min: c.Min, Level: c.Level}
	if err := Strict(data, &in); err != nil {
		return err
	}
	c.Window, c.Lease = time.Duration(in.Window), time.Duration(in.Lease)
	c.Min, c.Level = in.Min, in.Level
	if in.Stages != nil {
		c.Stages = in.Stages
	}
	if in.Steps != nil {
		c.Steps = in.Steps
	}
	if in.Limits != nil {
		c.Limits = in.Limits
	}
	return nil
}

func defaults() config {
	return config{Window: 10 * time.Second, Lease: Auto, Min: 20, Stages: []int{1, 5, 20}, Steps: []step{{0.1, time.Minute}}}
}

func TestAbsentKeysKeepWhatWasThere(t *testing.T) {
	c := defaults()
	require.NoError(t, json.Unmarshal([]byte(`{"min": 5, "lease": "30s", "level": null}`), &c))
	want := defaults()
	want.Min, want.Lease = 5, 30*time.Second
	assert.Equal(t, want, c)

	require.NoError(t, json.Unmarshal([]byte(`{"lease": "auto"}`), &c))
	want.Lease = Auto
	assert.Equal(t, want, c)
}

// encoding/json writes a list into the array that is there: a copy of a Config
// would change with the original, and an element that leaves out a key would
// get it from the element that was there before.
func TestListsAreReplacedWhole(t *testing.T) {
	shared := defaults()
	c := shared
	require.NoError(t, json.Unmarshal([]byte(`{"stages": [7], "steps": [{"share": 0.5}]}`), &c))
	assert.Equal(t, []int{7}, c.Stages)
	assert.Equal(t, []step{{Share: 0.5}}, c.Steps, "its For is not the old one's")
	assert.Equal(t, defaults(), shared)

	require.NoError(t, json.Unmarshal([]byte(`{"stages": [], "steps": null}`), &c))
	assert.Equal(t, []int{}, c.Stages, "an empty list replaces too")
	assert.Equal(t, []step{{Share: 0.5}}, c.Steps, "null is as good as absent")
}

func TestStrictNamesTheKey(t *testing.T) {
	const duration = `a duration in text such as "250ms", "1.5s" or "1h30m"`
	for _, tc := range []struct{ doc, want string }{
		{`{"windw": "1s"}`, `windw: unknown key`},
		{`{"windw": {"min": 1}}`, `windw: unknown key`},
		{`{"windw": 1e999}`, `windw: unknown key`},
		{`{"min": 1e999}`, `min: 1e999 is not an integer that fits int`},
		{`{"window": 250}`, `window: 250 is a bare number, want ` + duration},
		{`{"lease": 5}`, `lease: 5 is a bare number, want ` + duration + `, or "auto"`},
		{`{"min": "ten"}`, `min: "ten" is not an integer that fits int`},
		{`{"min": 1.5}`, `min: 1.5 is not an integer that fits int`},
		{`{"min": {"x": 1}}`, `min: {"x": 1} is not an integer that fits int`},
		{`{"level": "low"}`, `level: level "low" is not high`},
		{`{"level": 1}`, `level: 1 is not text in quotes`},
		{`{"stages": 5}`, `stages: 5 is not a list`},
		{`{"stages": [1, 5, "x"]}`, `stages[2]: "x" is not an integer that fits int`},
		{`{"stages": {"0": 1}}`, `stages: {"0": 1} is not a list`},
		{`{"steps": [{"share": 1}, {"shares": 1}]}`, `steps[1].shares: unknown key`},
		{`{"steps": [{}, {"for": 30}]}`, `steps[1].for: 30 is a bare number, want ` + duration},
		{`{"steps": [{}, 3]}`, `steps[1]: 3 is not an object`},
		{`{"limits": {"a": 1, "b.c": 256}}`, `limits["b.c"]: 256 is not an integer that fits uint8`},
		{`{"limits": {"": true}}`, `limits[""]: true is not an integer that fits uint8`},
		{`{"min": 1, "min": 2}`, `min: the key stands there twice`},
		{`{"steps": [{"for": "1s", "for": "2s"}]}`, `steps[0].for: the key stands there twice`},
		{`{"Min": 1, "min": 2}`, `Min: unknown key; it is written "min"`},
		{`{"steps": [{"FOR": "1s"}]}`, `steps[0].FOR: unknown key; it is written "for"`},
		{`[]`, `[] is not an object`},
		{`"x"`, `"x" is not an object`},
		{``, `the document is empty`},
		{" \n", `the document is empty`},
		{`{"min": 1`, `the document ends too early`},
		{"{\n  \"min\": x\n}", `line 2: invalid character 'x' looking for beginning of value`},
		{`{"min": 1} {"min": 2}`, `unexpected {"min": 2} after the document`},
		{`{"min": 1}]`, `unexpected ] after the document`},
	} {
		in := configJSON{Min: 20}
		err := Strict([]byte(tc.doc), &in)
		assert.EqualError(t, err, tc.want, tc.doc)
		var complaint *Error
		assert.ErrorAs(t, err, &complaint, tc.doc)
	}
}

func TestStrictTellsAllComplaints(t *testing.T) {
	var in configJSON
	err := Strict([]byte(`{"stages": [true, 1, false], "steps": [{"for": 1, "x": 0}], "colour": 1, "min": 3}`), &in)
	require.Error(t, err)
	var paths []string
	for line := range strings.Lines(err.Error()) {
		path, _, _ := strings.Cut(line, ": ")
		paths = append(paths, path)
	}
	assert.Equal(t, []string{"stages[0]", "stages[2]", "steps[0].for", "steps[0].x", "colour"}, paths)
}

// A document that is wrong everywhere must not become megabytes of log.
func TestStrictTellsAHundredComplaintsAtMost(t *testing.T) {
	for name, part := range map[string]string{
		"wrong":     `"min": 1, "steps": [` + strings.Repeat(`{"x": 1}, `, 500) + `{}]`,
		"repeated":  strings.Repeat(`"min": 1, `, 500) + `"window": "1s"`,
		"and below": `"steps": [{` + strings.Repeat(`"for": "1s", `, 500) + `"share": 1}], "min": 1, "min": 2`,
	} {
		var in configJSON
		err := Strict([]byte("{"+part+"}"), &in)
		require.Error(t, err, name)
		lines := strings.Split(err.Error(), "\n")
		assert.Len(t, lines, 101, name)
		assert.Equal(t, "and more, beside these 100", lines[100], name)
	}
}

func TestStrictThroughAnOuterType(t *testing.T) {
	var outer struct {
		Services map[string]config `json:"services"`
	}
	err := Strict([]byte(`{"services": {"user": {}, "order-1": {"steps": [{"for": "soon"}]}}}`), &outer)
	assert.ErrorContains(t, err, `services.order-1.steps[0].for: "soon" is not a duration`)
}

func TestAnErrorLeavesTheConfigAlone(t *testing.T) {
	c := defaults()
	require.Error(t, json.Unmarshal([]byte(`{"min": 1, "stages": [2], "window": "x"}`), &c))
	assert.Equal(t, defaults(), c)
}

// picky cannot be taken apart: without both keys it refuses to be decoded.
type picky struct{}

func (*picky) UnmarshalJSON(data []byte) error {
	var in struct {
		A *int `json:"a"`
		B *int `json:"b"`
	}
	if err := Strict(data, &in); err != nil {
		return err
	}
	if in.A == nil || in.B == nil {
		return errors.New("a and b go together")
	}
	return nil
}

func TestStrictWhereAPartMeansNothingAlone(t *testing.T) {
	var outer struct {
		P []picky `json:"p"`
	}
	assert.NoError(t, Strict([]byte(`{"p": [{"a": 1, "b": 2}]}`), &outer))
	assert.EqualError(t, Strict([]byte(`{"p": [{"a": 1}]}`), &outer), `p[0]: a and b go together`)
	assert.EqualError(t, Strict([]byte(`{"p": [{"a": 1, "b": true}]}`), &outer),
		`p[0]: b: true is not an integer that fits int`)
}

// Which keys a map has, only its owner knows.
func TestStrictLeavesTheKeysOfMapsAlone(t *testing.T) {
	got := defaults()
	require.NoError(t, json.Unmarshal([]byte(`{"limits": {"Users": 1, "users": 2}}`), &got))
	assert.Equal(t, uint8(1), got.Limits["Users"])
	assert.Equal(t, uint8(2), got.Limits["users"])
}

type base struct {
	Rate int `json:"rate"`
}

func TestStrictKnowsTheKeysOfWhatIsEmbedded(t *testing.T) {
	var in struct {
		base
		*Error
		Plain, plain int
		Other        int `json:"-"`
	}
	require.NoError(t, Strict([]byte(`{"Plain": 1}`), &in))
	assert.EqualError(t, Strict([]byte(`{"plain": 1}`), &in), `plain: unknown key; it is written "Plain"`)
	assert.EqualError(t, Strict([]byte(`{"Rate": 1}`), &in), `Rate: unknown key; it is written "rate"`)
	assert.EqualError(t, Strict([]byte(`{"Other": 1}`), &in), `Other: unknown key`)
}

func TestStrictNeedsAPointer(t *testing.T) {
	for _, into := range []any{nil, configJSON{}, (*configJSON)(nil)} {
		var invalid *json.InvalidUnmarshalError
		assert.ErrorAs(t, Strict([]byte(`{}`), into), &invalid)
	}
}

// FuzzStrict holds Strict against encoding/json, which says no to the same
// documents apart from repeated keys and those in another case, and against itself: a complaint has a
// place, and what Strict took comes out of encoding/json alike.
func FuzzStrict(f *testing.F) {
	for _, seed := range []string{
		`{"window":"1s","stages":[1,2],"steps":[{"share":0.5,"for":"1s"}]}`,
		`{"x":1}`, `{"steps":[{"for":1}]}`, `{"min":1,"min":2}`, `[]`, `{`, `{} 1`, `null`, `{"MIN":3}`, `{"min":1e999}`,
		`{"limits":{"\ud800":300}}`, `{"":[{"":{}}]}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want configJSON
		dec := json.NewDecoder(strings.NewReader(string(data)))
		dec.DisallowUnknownFields()
		refused := dec.Decode(&want) != nil || !json.Valid(data)
		err := Strict(data, &got)
		if err == nil {
			require.False(t, refused, "%s", data)
			require.Equal(t, want, got)
			return
		}
		var complaint *Error
		require.ErrorAs(t, err, &complaint)
		if !refused {
			require.Regexp(t, "the key stands there twice|unknown key; it is written", err.Error())
		}
	})
}

func TestStrictSaysWhatAKeyTakes(t *testing.T) {
	for into, want := range map[any]string{
		new(bool):           `true or false`,
		new(int8):           `an integer that fits int8`,
		new(uint64):         `an integer that fits uint64`,
		new(float32):        `a number that fits float32`,
		new(string):         `text in quotes`,
		new([2]int):         `a list`,
		new([]int):          `a list`,
		new(map[string]int): `an object`,
		new(struct{}):       `an object`,
		new(level):          `text in quotes`,
		new(chan int):       `a chan int`,
	} {
		value := `"x"`
		if strings.Contains(want, "text") {
			value = `7`
		}
		assert.EqualError(t, Strict([]byte(value), into), value+" is not "+want)
	}
}
