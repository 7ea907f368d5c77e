package ratelimit

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

func hot(t *testing.T, rate Rate, opts ...HotParametersOption) *HotParameters {
	t.Helper()
	h, err := NewHotParameters("product", rate, opts...)
	require.NoError(t, err)
	return h
}

func TestHotParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hot(t, PerSecond(2), WithException("sale", PerSecond(100), 150), WithException("banned", Blocked(), Auto), WithException("home", Unlimited(), Auto))
		for range 2 {
			assert.True(t, h.Allow("shoe"))
		}
		assert.False(t, h.Allow("shoe"))
		assert.False(t, h.Allow("shoe"))
		assert.True(t, h.Allow("hat"))
		assert.True(t, h.Take("sale", 150).OK())
		assert.False(t, h.Allow("sale"))
		assert.False(t, h.Allow("banned"))
		assert.True(t, h.Take("home", 1000).OK())
		d := h.Take("hat", 1)
		assert.Equal(t, "product", d.Resource())
		assert.Equal(t, "hot_parameters", d.Policy())
		assert.Equal(t, "hot_parameters", h.Take("sale", 1).Policy())
		h.Refund("hat", d)
		assert.EqualValues(t, 1, h.Peek("hat", 0).Remaining())
		assert.EqualValues(t, 0, h.Debit("hat", 1).Remaining())
		time.Sleep(time.Second)
		assert.True(t, h.Take("shoe", 2).OK())
		assert.EqualValues(t, 100, h.Peek("sale", 0).Remaining())
		assert.Equal(t, []HotKey{{"sale", "", 2, 0}, {"shoe", "", 2, 0}, {"banned", "", 1, 0}}, h.TopRejected(10))
	})
}

func TestHotParameters_InLayers(t *testing.T) {
	h, global := hot(t, PerHour(1), WithException("sale", PerHour(3), Auto)), sluice.Must(New("global", PerHour(4)))
	ask := func(value string) bool { return TakeAll(1, h.By(value), global.Layer()).OK() }
	assert.True(t, ask("shoe"))
	assert.False(t, ask("shoe"))
	assert.True(t, ask("sale"))
	assert.True(t, ask("sale"))
	assert.True(t, ask("hat"))
	assert.False(t, ask("sale"), "global is empty")
	assert.EqualValues(t, 1, h.Peek("sale", 0).Remaining(), "and it has its token back")
	assert.Equal(t, []HotKey{{"", "", 1, 0}}, h.TopRejected(1), "a layer has no name yet")
	assert.False(t, ask("shoe"))
	assert.Equal(t, []HotKey{{"shoe", "", 1, 0}}, h.TopRejected(1), "global refused, and shoe has told its name")
}

func TestHotParameters_Update(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hot(t, PerHour(10), WithException("sale", PerHour(100), Auto), WithException("vip", PerHour(50), Auto))
		h.Take("sale", 40)
		h.Take("vip", 10)
		h.Take("shoe", 6)
		left := func(value string) int64 { return h.Peek(value, 0).Remaining() }
		c := h.Config()
		c.Exceptions = []HotException{{"vip", PerHour(50), Auto, Auto}, {"shoe", PerHour(30), Auto, Auto}, {"hat", PerHour(30), Auto, Auto}}
		require.NoError(t, h.Update(c))
		assert.True(t, c.Equal(h.Config()))
		assert.EqualValues(t, 10, left("sale"), "as many as one that is no exception can have")
		assert.EqualValues(t, 40, left("vip"), "nothing has changed for it, though it was the second")
		assert.EqualValues(t, 4, left("shoe"))
		assert.EqualValues(t, 30, left("hat"))
		assert.True(t, h.Take("shoe", 4).OK())
		assert.False(t, h.Allow("shoe"))
		time.Sleep(time.Hour)
		assert.EqualValues(t, 30, left("shoe"))

		for i := range 300 { // the classes of limits that are gone serve again
			c.Exceptions = []HotException{{"vip", PerHour(50), Auto, Auto}}
			for j := range 99 {
				c.Exceptions = append(c.Exceptions, HotException{fmt.Sprint(j), PerHour(int64(1000 + i + j)), Auto, Auto})
			}
			require.NoError(t, h.Update(c))
		}
		assert.EqualValues(t, 50, left("vip"))
		assert.EqualValues(t, 1299, left("0"))
		c.Exceptions = append(c.Exceptions, HotException{"one more", PerHour(7), Auto, Auto})
		require.ErrorContains(t, h.Update(c), "Exceptions has 101 different limits, more than 100")
		c.Exceptions[100] = HotException{"vip too", PerHour(50), Auto, Auto}
		require.NoError(t, h.Update(c))
		c.MaxKeys = 5
		require.ErrorContains(t, h.Update(c), "MaxKeys 5")
	})
}

func TestHotParameters_TheNilOneLetsEverythingPass(t *testing.T) {
	var h *HotParameters
	assert.True(t, h.Allow("a"))
	assert.True(t, h.Take("a", math.MaxInt64).OK())
	assert.True(t, h.Peek("a", 1).OK())
	assert.True(t, h.Debit("a", 1).OK())
	h.Refund("a", Decision{})
	assert.True(t, TakeAll(1, h.By("a")).OK())
	assert.Empty(t, h.TopRejected(1))
	assert.Empty(t, h.Name())
	assert.Zero(t, h.Config())
	require.Error(t, h.Update(HotParametersConfig{}))
	assert.Equal(t, Unlimited(), h.Snapshot().Rate)
	h.Collect(nil)
	assert.Equal(t, h.Snapshot(), h.View())
}

func TestHotParameters_EveryComplaintAtOnce(t *testing.T) {
	_, err := NewHotParameters("", PerSecond(1), WithBurst(0), WithMaxKeys(0), nil, WithWhenFull(9), WithTopRejected(-1), WithInitial(3), WithMaxWait(1),
		WithException("a", Rate{}, 1), WithException("a", PerSecond(1), 0), WithHotParametersConfig(HotParametersConfig{Rate: PerSecond(3)}))
	for _, complaint := range []string{"name is empty", "option 2 is nil", "Rate 3/s of the configuration is not the 1/s", "MaxKeys 0", "WhenFull 0"} {
		assert.ErrorContains(t, err, complaint)
	}
	_, err = NewHotParameters("x", PerSecond(1), WithBurst(0), WithMaxKeys(0), WithWhenFull(9), WithTopRejected(-1), WithInitial(3), WithMaxWait(1),
		WithException("a", Rate{}, 1), WithException("a", PerSecond(1), 0))
	for _, complaint := range []string{
		"Burst 0 is less than 1", "MaxKeys 0", "WhenFull 9", "TopRejected -1", "WithInitial means nothing to a HotParameters", "WithMaxWait means nothing to a HotParameters",
		"Exceptions[0].Rate", `Exceptions[1].Value "a" stands there twice`, "Exceptions[1].Burst 0",
	} {
		assert.ErrorContains(t, err, complaint)
	}
}

func TestHotParameters_ConfigJSON(t *testing.T) {
	c := DefaultHotParametersConfig()
	c.Rate, c.Exceptions = PerMinute(60), []HotException{{"sale", PerSecond(10), 20, Auto}}
	data, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"rate":"60/m","burst":"auto","max_debt":"auto","exceptions":[{"value":"sale","rate":"10/s","burst":20,"max_debt":"auto"}],
		"max_keys":65536,"when_full":"evict_least_debt","top_rejected":256}`, string(data))
	var back HotParametersConfig
	require.NoError(t, json.Unmarshal(data, &back))
	assert.True(t, c.Equal(back))
	shared := back
	require.NoError(t, json.Unmarshal([]byte(`{"exceptions":[{"value":"x","rate":"1/s"}]}`), &back))
	assert.Equal(t, "sale", shared.Exceptions[0].Value)
	assert.Equal(t, []HotException{{"x", PerSecond(1), Auto, Auto}}, back.Exceptions)
	before := back.Clone()
	for bad, path := range map[string]string{`{"exceptions":[{"vlaue":"x"}]}`: "exceptions[0].vlaue", `{"classes":[]}`: "classes", `{"burst":1.5}`: "burst"} {
		require.ErrorContains(t, json.Unmarshal([]byte(bad), &back), path)
		assert.Equal(t, before, back)
	}
}

func TestHotParameters_Metrics(t *testing.T) {
	h := hot(t, PerHour(1), WithException("sale", PerHour(2), Auto))
	for range 3 {
		h.Allow("shoe")
		h.Allow("sale")
	}
	var set metrics.Set
	require.NoError(t, set.Add("product", h))
	got := map[string]float64{}
	set.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		got[fmt.Sprint(s.Desc.Name, s.Labels)] = s.Value
		return true
	})
	assert.InDelta(t, 3, got["ratelimit_admitted[product hot_parameters]"], 0)
	assert.InDelta(t, 3, got["rejected[product hot_parameters limited]"], 0)
	view, err := json.Marshal(h.View())
	require.NoError(t, err)
	assert.Contains(t, string(view), `"exceptions":[{"value":"sale"`)
	assert.NotContains(t, string(view), `"classes"`)
}

func TestHotParameters_AllocatesNothing(t *testing.T) {
	h := hot(t, PerSecond(1_000_000_000), WithException("poor", PerDay(1), 1))
	for name, do := range map[string]func(){
		"admitted": func() { h.Allow("rich") },
		"refused":  func() { h.Allow("poor") },
		"layers":   func() { TakeAll(1, h.By("rich"), h.By("poor")) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, do), name)
	}
}
