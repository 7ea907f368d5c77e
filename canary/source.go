package canary

import "fmt"

// Source is where an identity was found. It is a label of metrics; the zero Source is
// none in particular.
type Source uint8

const (
	// FromUser: who has signed in.
	FromUser Source = iota + 1
	// FromDevice: an id that the client keeps, as in a cookie or a device header.
	FromDevice
	// FromLink: the device that a user had signed in from first (LinkOnLogin).
	FromLink
	// FromAddress: the network address.
	FromAddress
	// Issued: nothing was found, and a fresh id was made for the client to keep.
	Issued
)

// sources is how many named ones there are.
const sources = int(Issued)

var sourceNames = [...]string{
	"unspecified", FromUser: "user", FromDevice: "device", FromLink: "link", FromAddress: "address", Issued: "issued",
}

// String returns the source in lower case, "unspecified" for the zero Source.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return fmt.Sprintf("Source(%d)", uint8(s))
}

// MarshalText returns the text of String.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
