package canary

import "fmt"

// Continuity says which identity counts where a request has both that of its user and
// that of its device. Without care, signing in changes the version of 2p(1−p) of the
// users at a share of p: 18 % at 10 %.
type Continuity uint8

const (
	// PreferUser: the user, so that all devices of a user get one version. Signing in
	// may change it.
	PreferUser Continuity = iota + 1
	// PreferDevice: the device, as long as it has an id. Signing in changes nothing,
	// but two devices of a user may get two versions.
	PreferDevice
	// LinkOnLogin: the device that the user was first seen on, also on other devices.
	// Signing in there changes nothing, and after it all devices get one version. It
	// needs Links.
	LinkOnLogin
)

var continuityNames = [...]string{PreferUser: "prefer_user", PreferDevice: "prefer_device", LinkOnLogin: "link_on_login"}

func (c Continuity) known() bool { return c >= PreferUser && c <= LinkOnLogin }

// String returns the name in snake case.
func (c Continuity) String() string {
	if c.known() {
		return continuityNames[c]
	}
	return fmt.Sprintf("Continuity(%d)", uint8(c))
}

// MarshalText returns the text of String.
func (c Continuity) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Links remembers on which device a user was first seen. Both methods are called on the
// way of a request, from many goroutines: they answer at once, from memory, and what
// talks to a store does so behind them.
type Links interface {
	// Linked returns the device of a user, "" if none is known.
	Linked(user string) (device string)
	// Link remembers a device, unless the user has one already.
	Link(user, device string)
}

// IdentifierOption sets one thing of a new Identifier.
type IdentifierOption func(*identifierSettings)

// WithContinuity says which identity counts where user and device are known.
//
// Default: PreferUser.
func WithContinuity(c Continuity) IdentifierOption {
	return func(s *identifierSettings) { s.continuity = c }
}

// WithLinks gives LinkOnLogin what it remembers users by.
//
// Default: none.
func WithLinks(l Links) IdentifierOption { return func(s *identifierSettings) { s.links = l } }

// WithRejectIDs sets what is no identity although it looks like one, whatever the case
// of its letters; nothing, to take all.
//
// Default: 0, -, anonymous, guest, nil, none, null, undefined, unknown and the UUID of
// zeros only.
func WithRejectIDs(ids ...string) IdentifierOption {
	return func(s *identifierSettings) { s.rejected = append([]string(nil), ids...) }
}

// WithIssue makes a fresh identity (NewID) where none is found, with the Source Issued:
// the caller gives it to the client to keep.
//
// Default: none is made.
func WithIssue() IdentifierOption { return func(s *identifierSettings) { s.issue = true } }

// identifierSettings is what the options fill in.
type identifierSettings struct {
	continuity Continuity
	links      Links
	rejected   []string
	issue      bool
}
