package canary

import (
	"errors"

	"github.com/sluicego/sluice/internal/clock"
)

// Input is what Decide knows of a request. Everything may be absent.
type Input struct {
	// ID is the identity that is hashed, byte by byte; "" is none. See Identifier.
	ID string
	// Source is where ID was found. It is counted, and decides nothing.
	Source Source
	// Override names the version that the request asks for, such as by a header. It is
	// granted if Authorized says so. "always" is the first of the other versions that
	// is not rolled back, "never" the stable one, if no version has that name.
	Override string
	// Authorized says that the caller has checked who asks: a trusted peer, say. A
	// request from outside must not be able to set it.
	Authorized bool
	// Token is a signed override, see Tokens. It counts for more than Override.
	Token string
	// Target is the version that rules or a feature flag want; "" is no opinion.
	Target string
	// Sticky is the version of an assignment that was stored earlier.
	Sticky string
}

// Decide decides which version serves a request. In this order:
//
//  1. Kill is in force: the stable version.
//  2. An override, by token or authorised, that names a version that there is and that
//     is not rolled back. A weight of 0 does not matter: that is how to try a version
//     before anybody gets it.
//  3. Target, else what WithTargeting says, for the same versions.
//  4. Sticky, if that version is stable, has a weight, or drains and its time is not
//     over.
//  5. The hash of ID.
//  6. Without an ID: chance, by the weights.
//  7. Or the stable version, if NoIdentity says so.
//
// What cannot be granted is counted and ignored, and the next in the order decides: a
// wish never fails a request.
func (p *Picker) Decide(in Input) Decision {
	if p == nil {
		return Decision{}
	}
	t := p.current.Load()
	if in.Override != "" || in.Token != "" || in.Target != "" || in.Sticky != "" || p.targeting != nil {
		if d, ok := p.wished(t, &in); ok {
			return d
		}
	}
	if in.ID == "" {
		return p.anonymous(t)
	}
	if t.killed {
		return t.decided(t.stable, Killed, in.Source, t.place(in.ID))
	}
	point := t.point(in.ID)
	v := t.at(point)
	if t.hash != nil {
		point = t.place(in.ID)
	}
	return t.decided(v, Split, in.Source, point)
}

// wished decides by wishes, if one can be granted.
func (p *Picker) wished(t *table, in *Input) (Decision, bool) {
	if t.killed {
		return Decision{}, false
	}
	v, reason := p.overridden(t, in), Override
	if v == nil {
		v, reason = p.targeted(t, in), Targeted
	}
	if v == nil {
		v, reason = p.stuck(t, in), Sticky
	}
	if v == nil {
		return Decision{}, false
	}
	var point uint32
	if in.ID != "" {
		point = t.place(in.ID)
	}
	return t.decided(v, reason, in.Source, point), true
}

// overridden returns the version that the request may ask for and does.
func (p *Picker) overridden(t *table, in *Input) *Version {
	wish := in.Override
	switch {
	case in.Token != "":
		signed, err := p.tokens.verify(in.Token, p.name, in.ID)
		if err != nil {
			p.ignore(causeOf(err))
			return nil
		}
		wish = signed
	case wish == "":
		return nil
	case !in.Authorized:
		p.ignore(ignoredUnauthorized)
		return nil
	}
	return p.granted(t, wish, ignoredUnknown, ignoredRolledBack)
}

// targeted returns the version that rules want.
func (p *Picker) targeted(t *table, in *Input) *Version {
	wish := in.Target
	if wish == "" && p.targeting != nil {
		wish = p.targeting(*in)
	}
	if wish == "" {
		return nil
	}
	return p.granted(t, wish, ignoredTargetUnknown, ignoredTargetRolledBack)
}

// granted returns the version of that name, if it may be wished for.
func (p *Picker) granted(t *table, wish string, unknown, rolledBack ignorance) *Version {
	i := t.index(wish)
	if i < 0 {
		i = t.alias(wish)
	}
	switch {
	case i < 0:
		p.ignore(unknown)
		return nil
	case t.standings[i].rolledBack:
		p.ignore(rolledBack)
		return nil
	}
	return t.standings[i].version
}

// alias is what "always" and "never" stand for, as in ingress-nginx.
func (t *table) alias(wish string) int {
	switch wish {
	case "never":
		return 0
	case "always":
		for i, s := range t.standings[1:] {
			if !s.rolledBack {
				return i + 1
			}
		}
	}
	return -1
}

// stuck returns the version of the stored assignment, if that still holds.
func (p *Picker) stuck(t *table, in *Input) *Version {
	if in.Sticky == "" {
		return nil
	}
	i := t.index(in.Sticky)
	switch {
	case i < 0:
		p.ignore(ignoredStickyUnknown)
	case t.standings[i].rolledBack:
		p.ignore(ignoredStickyRolledBack)
	case i > 0 && t.standings[i].weight == 0 && !t.standings[i].draining():
		p.ignore(ignoredStickyOver)
	default:
		return t.standings[i].version
	}
	return nil
}

// ignorance is why a wish was ignored.
type ignorance uint8

const (
	ignoredUnauthorized ignorance = iota
	ignoredUnknown
	ignoredRolledBack
	ignoredToken
	ignoredExpired
	ignoredOtherRollout
	ignoredSubject
	ignoredTargetUnknown
	ignoredTargetRolledBack
	ignoredStickyUnknown
	ignoredStickyRolledBack
	ignoredStickyOver
	ignorances = iota
)

// ignoranceNames has the wish and the cause.
var ignoranceNames = [ignorances][2]string{
	ignoredUnauthorized: {"override", "unauthorized"}, ignoredUnknown: {"override", "unknown_version"},
	ignoredRolledBack: {"override", "rolled_back"}, ignoredToken: {"override", "bad_token"},
	ignoredExpired: {"override", "expired"}, ignoredOtherRollout: {"override", "other_rollout"},
	ignoredSubject: {"override", "other_subject"}, ignoredTargetUnknown: {"target", "unknown_version"},
	ignoredTargetRolledBack: {"target", "rolled_back"}, ignoredStickyUnknown: {"sticky", "unknown_version"},
	ignoredStickyRolledBack: {"sticky", "rolled_back"}, ignoredStickyOver: {"sticky", "no_weight"},
}

func (p *Picker) ignore(i ignorance) { p.ignored[i].Add(1) }

// causeOf is the cause of a token that was not accepted.
func causeOf(err error) ignorance {
	switch {
	case errors.Is(err, ErrTokenExpired):
		return ignoredExpired
	case errors.Is(err, ErrTokenRollout):
		return ignoredOtherRollout
	case errors.Is(err, ErrTokenSubject):
		return ignoredSubject
	}
	return ignoredToken
}

// draining reports whether stored assignments still hold.
func (s *standing) draining() bool { return s.drainUntil != 0 && clock.Now() < s.drainUntil }
