package canary

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicego/sluice/internal/jsontime"
)

// GroupConfig is what the routes of a Group are split by, as plain data.
//
// In JSON it is {"routes": {route: {…}, …}}, each as Config has it and over what
// DefaultConfig returns. The routes are replaced whole; an unknown key is an error.
type GroupConfig struct {
	Routes map[string]Config
}

// Validate returns all that is wrong with c, joined; nil if nothing is.
func (c GroupConfig) Validate() error {
	var v complaints
	for _, route := range slices.Sorted(maps.Keys(c.Routes)) {
		v.name("a route", route)
		if err := c.Routes[route].Validate(); err != nil {
			v = append(v, fmt.Errorf("canary: route %q: %w", route, err))
		}
	}
	return errors.Join(v...)
}

type groupConfigJSON struct {
	Routes map[string]routeJSON `json:"routes"`
}

// routeJSON is a Config over DefaultConfig.
type routeJSON struct{ Config }

// UnmarshalJSON starts from DefaultConfig.
func (r *routeJSON) UnmarshalJSON(data []byte) error {
	c := DefaultConfig()
	if err := c.UnmarshalJSON(data); err != nil {
		return err
	}
	r.Config = c
	return nil
}

// MarshalJSON writes every key.
func (c GroupConfig) MarshalJSON() ([]byte, error) {
	j := groupConfigJSON{map[string]routeJSON{}}
	for route, own := range c.Routes {
		j.Routes[route] = routeJSON{own}
	}
	return json.Marshal(j)
}

// UnmarshalJSON replaces the routes, if there are any in data. It does not validate; c
// is as before when it returns an error.
func (c *GroupConfig) UnmarshalJSON(data []byte) error {
	var j groupConfigJSON
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	if j.Routes == nil {
		return nil
	}
	routes := map[string]Config{}
	for route, own := range j.Routes {
		routes[route] = own.Config
	}
	c.Routes = routes
	return nil
}

// Config returns a copy of the configuration in force, with the weights as they are.
func (g *Group) Config() GroupConfig {
	c := GroupConfig{Routes: map[string]Config{}}
	for route, p := range g.All() {
		c.Routes[route] = p.Config()
	}
	return c
}

// Update changes the routes: those that are not in c have no rule any more, and their
// pickers are forgotten with all they remembered; new ones get what the options for
// all routes have set beside the data; others are changed as by Picker.Update, so
// nobody moves where nothing changed. If c does not validate, or has too many routes,
// it returns the complaints and changes nothing. A route that cannot be changed,
// because a version was rolled back, stays as it is, and is in the error.
func (g *Group) Update(c GroupConfig) error {
	if g == nil {
		return c.Validate()
	}
	v := complaints{}
	v.unless(len(c.Routes) <= g.most, "%d routes are more than MaxKeys %d", len(c.Routes), g.most)
	if err := c.Validate(); err != nil {
		v = append(v, err)
	}
	if len(v) > 0 {
		return errors.Join(v...)
	}
	changed, err := g.update(c)
	for _, p := range changed {
		p.deliver()
	}
	return err
}

// update puts the valid c in force, and returns the pickers that may have something to
// tell.
func (g *Group) update(c GroupConfig) (changed []*Picker, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, next := *g.routes.Load(), map[string]*Picker{}
	var errs []error
	for _, route := range slices.Sorted(maps.Keys(c.Routes)) {
		own, p := c.Routes[route], now[route]
		if p == nil {
			p = newPicker(g.nameOf(route), own, g.base.hooks)
		} else {
			errs = append(errs, p.alter(Change{Action: ActionUpdate}, updating(own)))
			changed = append(changed, p)
		}
		next[route] = p
	}
	g.routes.Store(&next)
	return changed, errors.Join(errs...)
}
