package canary

import (
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"strings"
)

// MaxID is how many bytes an identity may have.
const MaxID = 128

// issuedLength is how many characters an id of NewID has: 128 bits in base64url.
const issuedLength = 22

// Identity is who a request is from, as far as the split is concerned.
type Identity struct {
	ID     string // "" is nobody that could be told
	Source Source // where ID was found; Issued says that the client must be given it
}

// NewID returns a fresh random identity of 128 bits, 22 characters of base64url, for a
// client to keep. It is hashed for the very request that it is made for, so that this
// and the next one agree. It is no secret and proves nothing.
func NewID() string {
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// ValidID reports whether id can be an identity: 1 to 128 bytes of UTF-8 without
// control characters. It is hashed as it is, nothing is trimmed or folded.
func ValidID(id string) bool { return id != "" && len(id) <= MaxID && printable(id) }

// IssuedID returns id if it looks like one of NewID's, else "": whatever else a client
// sends in place of one is no identity, and it is given another.
func IssuedID(id string) string {
	if len(id) != issuedLength {
		return ""
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return ""
		}
	}
	return id
}

// OneValue returns the only value of a header, and "" if there is none or there are
// several: nobody can say which of them is meant.
func OneValue(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// AddressID returns the identity of a network address: an IPv4 address, or the first
// 64 bits of an IPv6 address, which are one customer's. It is "" for an address that is
// none. Behind one address may be a whole company or mobile network, which then gets
// one version: take it last, if at all.
func AddressID(a netip.Addr) string {
	switch a = a.Unmap().WithZone(""); {
	case !a.IsValid():
		return ""
	case a.Is4():
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}

// placeholders are what programs send when there is nobody. As identities they would
// give all these requests one version: a rollout would be all or nothing.
var placeholders = []string{
	"0", "-", "anonymous", "guest", "nil", "none", "null", "undefined", "unknown", "00000000-0000-0000-0000-000000000000",
}

// among reports whether id is one of ids, whatever the case of its letters.
func among(ids []string, id string) bool {
	for _, other := range ids {
		if strings.EqualFold(other, id) {
			return true
		}
	}
	return false
}
