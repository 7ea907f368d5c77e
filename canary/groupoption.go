package canary

// groupSettings is what only a Group's options set.
type groupSettings struct {
	most   int
	routes []groupRoute
}

// groupRoute is one use of WithRoute.
type groupRoute struct {
	route, stable string
	opts          []Option
}

const defaultMaxKeys = 1024

// WithRoute gives a route of a Group its rule: a stable version, and options on top of
// those for all routes. A second one for the same route replaces the first. It is an
// error in New.
//
// Default: none, every route passes.
func WithRoute(route, stable string, opts ...Option) Option {
	return func(s *settings) {
		g := s.forGroup()
		r := groupRoute{route, stable, opts}
		for i := range g.routes {
			if g.routes[i].route == route {
				g.routes[i] = r
				return
			}
		}
		g.routes = append(g.routes, r)
	}
}

// WithMaxKeys sets how many routes a Group has at most. It is an error in New.
//
// Default: 1 024.
func WithMaxKeys(n int) Option {
	return func(s *settings) { s.forGroup().most = n }
}

func (s *settings) forGroup() *groupSettings {
	if s.group == nil {
		s.group = &groupSettings{most: defaultMaxKeys}
	}
	return s.group
}
