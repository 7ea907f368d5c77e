package canary

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/metrics"
)

// Group has one Picker for each route that has a rule. A route without one has none:
// Get returns a nil *Picker for it, which lets the request pass untouched.
//
// Get takes no lock and allocates nothing. What is a route is up to the caller, who
// must not take it from what a client can make up: the pattern of a mux, not the path.
// A Group starts no goroutine, is safe for concurrent use and must not be copied. Make
// one with NewGroup. A nil *Group has no routes.
type Group struct {
	name string
	base settings // what the options for all routes have set
	most int

	mu sync.Mutex // puts updates in order
	// routes is replaced as a whole, by Update alone, under mu.
	routes atomic.Pointer[map[string]*Picker]
}

// NewGroup returns a group with the routes of WithRoute; other options are for all of
// them. The name and "/" stand before the route in the name of each Picker. It returns
// every complaint at once.
func NewGroup(name string, opts ...Option) (*Group, error) {
	s := newSettings("")
	s.apply(opts)
	g := s.forGroup()
	s.group = nil
	s.errs.name("the name", name)
	s.errs.unless(g.most >= 1, "MaxKeys %d is not positive", g.most)
	group := &Group{name: name, base: *s, most: g.most}
	routes := map[string]*Picker{}
	for _, r := range g.routes {
		own, err := group.settings(r)
		if err != nil {
			s.errs = append(s.errs, err)
			continue
		}
		routes[r.route] = newPicker(group.nameOf(r.route), own.Config, own.hooks)
	}
	s.errs.unless(len(routes) <= g.most, "%d routes are more than MaxKeys %d", len(routes), g.most)
	if len(s.errs) > 0 {
		return nil, errors.Join(s.errs...)
	}
	group.routes.Store(&routes)
	return group, nil
}

// settings is what is set for one route, on top of what is for all.
func (g *Group) settings(r groupRoute) (*settings, error) {
	s := g.base
	s.Config, s.errs = s.Config.Clone(), nil
	s.onChange = slices.Clip(s.onChange)
	s.Stable = r.stable
	s.apply(r.opts)
	s.errs.name("the route", r.route)
	s.errs.unless(s.group == nil, "WithMaxKeys and WithRoute are for NewGroup")
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("canary: route %q: %w", r.route, err)
	}
	return &s, nil
}

func (g *Group) nameOf(route string) string { return g.name + "/" + route }

// Name returns the name given to NewGroup.
func (g *Group) Name() string {
	if g == nil {
		return ""
	}
	return g.name
}

// Get returns the picker of a route; nil, which lets pass, if it has no rule.
func (g *Group) Get(route string) *Picker {
	if g == nil {
		return nil
	}
	return (*g.routes.Load())[route]
}

// Len returns how many routes have a rule.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	return len(*g.routes.Load())
}

// All returns the pickers with their routes, in the order of these.
func (g *Group) All() iter.Seq2[string, *Picker] {
	return func(yield func(string, *Picker) bool) {
		if g == nil {
			return
		}
		routes := *g.routes.Load()
		for _, route := range slices.Sorted(maps.Keys(routes)) {
			if !yield(route, routes[route]) {
				return
			}
		}
	}
}

// Collect yields the figures of all pickers, for metrics.Set.
func (g *Group) Collect(yield func(metrics.Sample) bool) {
	more := true
	counted := func(s metrics.Sample) bool { more = yield(s); return more }
	for _, p := range g.All() {
		if p.Collect(counted); !more {
			return
		}
	}
}

// View returns the snapshots of all pickers by route, for metrics.Set.
func (g *Group) View() any {
	views := map[string]Snapshot{}
	for route, p := range g.All() {
		views[route] = p.Snapshot()
	}
	return views
}
