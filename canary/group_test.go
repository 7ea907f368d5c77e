package canary

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

func TestGroup(t *testing.T) {
	var changes []string
	g := sluice.Must(NewGroup("shop", WithOnChange(func(c Change) { changes = append(changes, c.Name) }), WithNoIdentity(StableVersion),
		WithRoute("/checkout", "v1", WithVersion("v2", 0, Percent(5))),
		WithRoute("/search", "old", WithVersion("new", 0, Percent(50)), WithNoIdentity(RandomVersion)),
		WithRoute("/search", "s1", WithVersion("s2", 0, Percent(20)))))
	assert.Equal(t, "shop", g.Name())
	assert.Equal(t, 2, g.Len())
	assert.Equal(t, "shop/checkout", "shop"+g.Get("/checkout").Name()[len("shop/"):])
	assert.Equal(t, "s1", g.Get("/search").Stable().Name(), "a second rule replaces the first")
	assert.Equal(t, StableVersion, g.Get("/search").Config().NoIdentity)
	assert.Equal(t, Percent(5), g.Get("/checkout").Share("v2"))

	untouched := g.Get("/about")
	assert.Nil(t, untouched)
	assert.Equal(t, Decision{}, untouched.Decide(Input{ID: "alice"}), "a route without a rule passes untouched")

	checkout := g.Get("/checkout")
	require.NoError(t, checkout.Rollback("v2", "errors"))
	c := g.Config()
	delete(c.Routes, "/search")
	c.Routes["/pay"] = Config{Stable: "p1", HashSpec: 1, NoIdentity: RandomVersion, Versions: []VersionConfig{{"p2", 0, Percent(1)}}}
	text, err := json.Marshal(c)
	require.NoError(t, err)
	var again GroupConfig
	require.NoError(t, json.Unmarshal(text, &again))
	require.NoError(t, g.Update(again))
	assert.Same(t, checkout, g.Get("/checkout"), "what is not changed keeps its state")
	assert.Nil(t, g.Get("/search"))
	require.NoError(t, g.Get("/pay").SetWeights(map[string]Weight{"p2": Percent(2)}))
	assert.Equal(t, []string{"shop//checkout", "shop//pay"}, changes, "new routes have the listeners for all")
	var routes []string
	for route := range g.All() {
		routes = append(routes, route)
	}
	assert.Equal(t, []string{"/checkout", "/pay"}, routes)
	for range g.All() {
		break
	}

	c = g.Config()
	c.Routes["/checkout"].Versions[0].Weight = 1
	c.Routes["/pay"] = Config{Stable: "p1", HashSpec: 1, NoIdentity: RandomVersion}
	require.ErrorIs(t, g.Update(c), ErrRolledBack)
	assert.Empty(t, g.Get("/pay").Config().Versions, "others are changed all the same")
}

func TestGroup_Complaints(t *testing.T) {
	_, err := NewGroup("", nil, WithMaxKeys(0), WithVersion("v2", 0, 5), WithRoute("", "v1"), WithRoute("/a", "v2"), WithRoute("/b", "v1", WithRoute("/c", "v1")))
	for _, says := range []string{
		"the name is empty", "option 0 is nil", "MaxKeys 0 is not positive", `route "": canary: the route is empty`,
		`route "/a": canary: Versions[0].Name "v2" is the stable version`, `route "/b": canary: WithMaxKeys and WithRoute are for NewGroup`,
	} {
		assert.ErrorContains(t, err, says)
	}
	_, err = NewGroup("g", WithMaxKeys(1), WithRoute("/a", "v1"), WithRoute("/b", "v1"))
	require.ErrorContains(t, err, "2 routes are more than MaxKeys 1")

	g := sluice.Must(NewGroup("g", WithMaxKeys(1), WithRoute("/a", "v1")))
	err = g.Update(GroupConfig{Routes: map[string]Config{"/a": {}, "": DefaultConfig()}})
	for _, says := range []string{"2 routes are more than MaxKeys 1", "a route is empty", `route "/a": canary: Stable is empty`} {
		require.ErrorContains(t, err, says)
	}
	assert.Equal(t, 1, g.Len())
	for text, says := range map[string]string{
		`{"routs":{}}`: "unknown key", `{"routes":{"/a":{"stabel":"v1"}}}`: `routes["/a"].stabel: unknown key`,
	} {
		c := g.Config()
		require.ErrorContains(t, json.Unmarshal([]byte(text), &c), says)
		assert.Equal(t, g.Config(), c)
	}
	c := g.Config()
	require.NoError(t, json.Unmarshal([]byte(`{}`), &c))
	assert.Len(t, c.Routes, 1)
	require.NoError(t, json.Unmarshal([]byte(`{"routes":{"/b":{"stable":"v1"}}}`), &c))
	assert.Equal(t, 1, c.Routes["/b"].HashSpec, "a route starts from the defaults")
	require.NoError(t, c.Validate())

	var none *Group
	assert.Nil(t, none.Get("/a"))
	assert.Empty(t, none.Name())
	assert.Zero(t, none.Len())
	assert.Empty(t, none.Config().Routes)
	assert.Empty(t, none.View())
	none.Collect(nil)
	require.NoError(t, none.Update(c))
	require.Error(t, none.Update(GroupConfig{Routes: map[string]Config{"/a": {}}}))
}

// A listener may change the group that it hears from.
func TestGroup_ListenersRunWithoutItsLock(t *testing.T) {
	var g *Group
	heard := 0
	g = sluice.Must(NewGroup("g", WithOnChange(func(Change) {
		if heard++; heard == 1 {
			assert.NoError(t, g.Update(g.Config()))
		}
	}), WithRoute("/a", "v1", WithVersion("v2", 0, 0))))
	c := g.Config()
	c.Routes["/a"].Versions[0].Weight = Percent(5)
	require.NoError(t, g.Update(c))
	assert.Equal(t, 1, heard)
}

func TestGroup_Race(t *testing.T) {
	g := sluice.Must(NewGroup("g", WithRoute("/a", "v1", WithVersion("v2", 0, 0))))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				c := g.Config()
				if n%2 == i%2 {
					c.Routes["/b"] = Config{Stable: "b", HashSpec: 1, NoIdentity: RandomVersion}
				} else {
					delete(c.Routes, "/b")
				}
				assert.NoError(t, g.Update(c))
				assert.Equal(t, "v1", g.Get("/a").Pick("alice").Name())
				g.Get("/b").Pick("alice")
				g.Collect(func(metrics.Sample) bool { return true })
			}
		})
	}
	all.Wait()
	assert.Equal(t, int64(800), g.Get("/a").Snapshot().Versions[0].Requests["split"])
}

func TestGroup_MetricsAndView(t *testing.T) {
	g := sluice.Must(NewGroup("g", WithRoute("a", "v1"), WithRoute("b", "v1")))
	var set metrics.Set
	require.NoError(t, set.Add("g", g))
	var names []string
	g.Collect(func(s metrics.Sample) bool {
		names = append(names, s.Labels[0])
		return true
	})
	assert.Equal(t, []string{"g/a", "g/b"}, slices.Compact(names))
	n := 0
	g.Collect(func(metrics.Sample) bool { n++; return n < 3 })
	assert.Equal(t, 3, n, "it stops when it is told to")
	assert.Len(t, g.View(), 2)
}
