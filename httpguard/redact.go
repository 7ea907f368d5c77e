package httpguard

import (
	"net/url"
	"strconv"
	"strings"
)

// redacted returns the text of err for a log: every URL in it without user,
// password, query and fragment, which may hold secrets. u is the one of the request,
// whose parts are known and so are found even where the text is no longer a URL.
func redacted(u *url.URL, err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if u != nil && u.User != nil {
		text = strings.ReplaceAll(text, u.User.String()+"@", "")
	}
	if u != nil && u.RawQuery != "" {
		text = strings.ReplaceAll(text, "?"+u.RawQuery, "")
		if quoted := strconv.Quote(u.RawQuery); quoted[1:len(quoted)-1] != u.RawQuery {
			text = strings.ReplaceAll(text, "?"+quoted[1:len(quoted)-1], "")
		}
	}
	var kept strings.Builder
	for {
		before, after, found := strings.Cut(text, "://")
		kept.WriteString(before)
		if !found {
			return kept.String()
		}
		kept.WriteString("://")
		end := strings.IndexAny(after, " \t\r\n\"'`<>")
		if end < 0 {
			end = len(after)
		}
		kept.WriteString(originAndPath(after[:end]))
		text = after[end:]
	}
}

// originAndPath returns host, port and path of what follows "://" in a URL.
func originAndPath(rest string) string {
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	return authority[strings.LastIndexByte(authority, '@')+1:] + path
}
