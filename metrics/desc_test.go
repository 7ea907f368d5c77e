package metrics

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKind(t *testing.T) {
	out, err := json.Marshal([]Kind{Counter, Gauge})
	require.NoError(t, err)
	assert.Equal(t, `["counter","gauge"]`, string(out))

	for _, bad := range []Kind{0, 3} {
		_, err := json.Marshal(bad)
		assert.ErrorContains(t, err, "is neither counter (1) nor gauge (2)")
	}
	assert.Equal(t, "Kind(0)", Kind(0).String())
}

func TestDescValidate(t *testing.T) {
	for _, d := range []*Desc{callsDesc, limitDesc, faultsDesc,
		{Name: "breaker_open_seconds", Help: "x", Unit: "s", Kind: Counter},
		{Name: "p99_seconds", Help: "x", Unit: "s", Kind: Gauge, Labels: []string{"resource", "le2"}},
		{Name: "share_ratio", Help: "x", Unit: "1", Kind: Gauge},
	} {
		assert.NoError(t, d.Validate(), d.Name)
	}

	good := Desc{Name: "calls", Help: "x", Kind: Counter}
	for _, tc := range []struct {
		change func(*Desc)
		want   string
	}{
		{func(d *Desc) { d.Name = "" }, `metrics: name "" is not snake_case`},
		{func(d *Desc) { d.Name = "Calls" }, `metrics: name "Calls" is not snake_case`},
		{func(d *Desc) { d.Name = "breaker.calls" }, `metrics: name "breaker.calls" is not snake_case`},
		{func(d *Desc) { d.Name = "_calls" }, `metrics: name "_calls" is not snake_case`},
		{func(d *Desc) { d.Name = "calls_" }, `metrics: name "calls_" is not snake_case`},
		{func(d *Desc) { d.Name = "slow__calls" }, `metrics: name "slow__calls" is not snake_case`},
		{func(d *Desc) { d.Name = "5xx" }, `metrics: name "5xx" is not snake_case`},
		{func(d *Desc) { d.Name = "calls_total" }, `metrics: name "calls_total" ends in _total, which exporters add`},
		{func(d *Desc) { d.Unit = "s" }, `metrics: name "calls" and unit "s": unit "s" and the ending _seconds belong together`},
		{func(d *Desc) { d.Name = "open_seconds" }, `metrics: name "open_seconds" and unit "": unit "s" and the ending _seconds belong together`},
		{func(d *Desc) { d.Help = "" }, `metrics: help of "calls" is empty`},
		{func(d *Desc) { d.Kind = 0 }, `metrics: kind 0 is neither counter (1) nor gauge (2)`},
		{func(d *Desc) { d.Labels = []string{"Route"} }, `metrics: label "Route" of "calls" is not snake_case`},
		{func(d *Desc) { d.Labels = []string{"a", "b", "a"} }, `metrics: label "a" of "calls" stands there twice`},
	} {
		d := good
		tc.change(&d)
		assert.EqualError(t, d.Validate(), tc.want)
	}

	var empty Desc
	assert.Len(t, strings.Split(empty.Validate().Error(), "\n"), 3, "all complaints at once")
}
