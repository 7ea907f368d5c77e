package canary

import (
	"errors"
	"slices"
)

// Lookup is one place where a request of type R may say who it is from.
type Lookup[R any] struct {
	Source Source
	// Find returns the identity found there, "" if there is none.
	Find func(R) string
}

// Identifier finds out who requests of type R are from: an *http.Request, the metadata
// of an RPC, a message. It asks its lookups in the order given, and the first answer
// that is a valid identity and no placeholder counts; Continuity says what happens
// where both the user and the device are known.
//
// Only what a client cannot choose freely belongs in it, or what it gains nothing by:
// who may send any header can roll for an identity until it gets the canary.
//
// Identify takes no lock, and allocates only to issue an id; the lookups and the Links
// are called on the way of the request. It is safe for concurrent use. A nil
// *Identifier finds nobody. Make one with NewIdentifier.
type Identifier[R any] struct {
	lookups []Lookup[R]
	identifierSettings
}

// NewIdentifier returns an identifier that asks lookups in this order. It returns
// every complaint at once.
func NewIdentifier[R any](lookups []Lookup[R], opts ...IdentifierOption) (*Identifier[R], error) {
	s := identifierSettings{continuity: PreferUser, rejected: placeholders}
	var v complaints
	for i, o := range opts {
		v.unless(o != nil, "option %d is nil", i)
		if o != nil {
			o(&s)
		}
	}
	for i, l := range lookups {
		v.unless(l.Find != nil, "lookup %d (%v) has no Find", i, l.Source)
		v.unless(int(l.Source) <= sources, "lookup %d has source %d, which is none", i, uint8(l.Source))
	}
	v.unless(s.continuity.known(), "Continuity %d is not one of %v, %v, %v", uint8(s.continuity), PreferUser, PreferDevice, LinkOnLogin)
	v.unless(s.continuity != LinkOnLogin || s.links != nil, "%v needs WithLinks", LinkOnLogin)
	if len(v) > 0 {
		return nil, errors.Join(v...)
	}
	return &Identifier[R]{slices.Clone(lookups), s}, nil
}

// Identify returns who the request is from; the zero Identity if nobody can be told.
func (f *Identifier[R]) Identify(request R) Identity {
	if f == nil {
		return Identity{}
	}
	var first, user, device Identity
	for i := range f.lookups {
		l := &f.lookups[i]
		if l.Source == FromUser && user.ID != "" || l.Source == FromDevice && device.ID != "" || first.ID != "" && !l.competes() {
			continue
		}
		id := l.Find(request)
		if !ValidID(id) || among(f.rejected, id) {
			continue
		}
		found := Identity{id, l.Source}
		switch l.Source {
		case FromUser:
			user = found
		case FromDevice:
			device = found
		}
		if first.ID == "" {
			first = found
		}
	}
	if first.ID == "" && f.issue {
		return Identity{NewID(), Issued}
	}
	return f.choose(first, user, device)
}

// competes reports whether the lookup counts although another has found somebody.
func (l *Lookup[R]) competes() bool { return l.Source == FromUser || l.Source == FromDevice }

// choose keeps to one of those that were found.
func (s *identifierSettings) choose(first, user, device Identity) Identity {
	switch {
	case s.continuity == PreferUser && user.ID != "":
		return user
	case s.continuity == PreferDevice && device.ID != "":
		return device
	case s.continuity != LinkOnLogin || user.ID == "":
		return first
	}
	if linked := s.links.Linked(user.ID); ValidID(linked) {
		return Identity{linked, FromLink}
	}
	if device.ID != "" {
		s.links.Link(user.ID, device.ID)
		return device
	}
	return user
}
