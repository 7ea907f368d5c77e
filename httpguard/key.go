package httpguard

import (
	"hash/maphash"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// A Key names the resource that a request goes to: requests with the same key
// share one breaker. The empty key stands for none. Key is called once for each
// request, on its path, and must be safe for concurrent use.
//
// A key is a name in metrics and logs, so it must come from a set that is small
// and not in the hands of strangers: the upstream, a route, an operation; never
// the path, and never a header that a client sent.
type Key interface {
	Key(r *http.Request) string
}

// KeyFunc makes a function a Key.
type KeyFunc func(*http.Request) string

// Key returns f(r).
func (f KeyFunc) Key(r *http.Request) string { return f(r) }

// ByHost keys requests by where their URL leads: scheme://host:port in lower case,
// with the scheme's default port filled in, such as "https://example.com:443". A
// request without a host has no key. In a Transport it allocates only for a host
// that it has not seen lately.
var ByHost Key = byHost{}

type byHost struct{}

// Key returns the canonical origin of r's URL.
func (byHost) Key(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	return origin(r.URL)
}

// origin is scheme://host:port.
func origin(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if host == "" {
		return ""
	}
	scheme := strings.ToLower(u.Scheme)
	if port == "" {
		switch scheme {
		case "http":
			port = "80"
		case "https":
			port = "443"
		}
	}
	if port != "" {
		host = net.JoinHostPort(host, port)
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host
}

const (
	hostSlots = 1024 // a power of two
	hostReach = 8    // how many slots from its first one a host may lie
)

// hostKeys remembers the keys of the hosts seen, so that a known one builds no
// string. It is a table of fixed size: when all places that a host may take are
// taken, it takes the place of another, which costs that one an allocation when it
// comes again. The table keeps keys only; which breakers live is the Group's.
type hostKeys struct {
	seed maphash.Seed
	// Whoever misses a host stores it, whole and for ever unchanged. Two that do so
	// at once may store it twice, or overwrite each other; both have the right key.
	slots    [hostSlots]atomic.Pointer[hostKey]
	replaced atomic.Uint64
}

// hostKey is what a URL has, letter by letter, and the key it leads to.
type hostKey struct{ scheme, host, key string }

func newHostKeys() *hostKeys { return &hostKeys{seed: maphash.MakeSeed()} }

// of returns the key of u's origin.
func (h *hostKeys) of(u *url.URL) string {
	first := maphash.String(h.seed, u.Host)
	for i := range uint64(hostReach) {
		slot := &h.slots[(first+i)%hostSlots]
		known := slot.Load()
		if known == nil {
			return h.remember(slot, u)
		}
		if known.host == u.Host && known.scheme == u.Scheme {
			return known.key
		}
	}
	h.replaced.Add(1)
	return h.remember(&h.slots[first%hostSlots], u)
}

func (h *hostKeys) remember(slot *atomic.Pointer[hostKey], u *url.URL) string {
	key := origin(u)
	// The host may be a piece of a long URL; do not keep all of it.
	slot.Store(&hostKey{strings.Clone(u.Scheme), strings.Clone(u.Host), key})
	return key
}
