package canary

import "fmt"

// NoIdentity says who serves requests without an identity.
type NoIdentity uint8

const (
	// RandomVersion throws a point for each of them, so that they are split by the
	// weights. Two requests of one client may get two versions.
	RandomVersion NoIdentity = iota + 1
	// StableVersion gives them all to the stable version.
	StableVersion
)

var noIdentityNames = [...]string{RandomVersion: "random", StableVersion: "stable"}

func (n NoIdentity) known() bool { return n == RandomVersion || n == StableVersion }

// String returns "random" or "stable".
func (n NoIdentity) String() string {
	if n.known() {
		return noIdentityNames[n]
	}
	return fmt.Sprintf("NoIdentity(%d)", uint8(n))
}

// MarshalText writes what String returns, also of one that is not known: to complain
// is the owner's Validate.
func (n NoIdentity) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads "random" or "stable".
func (n *NoIdentity) UnmarshalText(text []byte) error {
	for known, name := range noIdentityNames {
		if name != "" && name == string(text) {
			*n = NoIdentity(known)
			return nil
		}
	}
	return fmt.Errorf("%.40q is not one of %v, %v", text, RandomVersion, StableVersion)
}
