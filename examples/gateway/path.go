package main

import (
	"net/url"
	"slices"
	"strings"
)

// cutPrefix takes prefix off a path that a mux has found to begin with it: as many
// segments, however the client has written them.
func cutPrefix(u *url.URL, prefix string) {
	u.Path = strings.TrimPrefix(u.Path, prefix)
	if u.RawPath == "" {
		return
	}
	rest := u.RawPath
	for range strings.Count(prefix, "/") {
		_, rest, _ = strings.Cut(rest[1:], "/")
		if rest = "/" + rest; rest == "/" {
			break
		}
	}
	u.RawPath = rest
}

// leadsUp reports whether some server might take a segment of a path for the way up,
// and so answer for what is not below the URL of its service. The mux sees to those
// that are written plainly.
func leadsUp(path string) bool {
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.ContainsFunc(segments, func(s string) bool {
		name, _, _ := strings.Cut(s, ";") // to some, what follows is a parameter
		return name == ".."
	})
}
