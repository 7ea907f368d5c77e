package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A config is what the gateway for real upstreams is told in a file. gateway.json
// beside this one is an example.
type config struct {
	// listen is where clients come. admin is where operators look; without a host
	// it is on loopback only.
	listen, admin string
	slots         int           // requests at once; one more is refused
	clientIdle    time.Duration // of a client that stands still in a body; 0 is none
	drain         time.Duration // how long requests may take to end after SIGTERM
	report        time.Duration // between two reports of each service; 0 is none
	services      []serviceConfig
}

// A serviceConfig is a service behind the gateway.
type serviceConfig struct {
	name string // its key in the file
	// prefix is where the paths begin that are for the service, with a "/" at its
	// end; the service sees what follows it.
	prefix string
	url    *url.URL // a path in it stands before what the service sees
	settings
}

// mostSlots is what the bound of an httpguard.Gate can be.
const mostSlots = math.MaxUint32

func defaultConfig() config {
	return config{
		listen:     "127.0.0.1:8080",
		admin:      "127.0.0.1:8081",
		slots:      200,
		clientIdle: 30 * time.Second,
		drain:      10 * time.Second,
		report:     10 * time.Second,
	}
}

// loadConfig reads a file. Its error has a line for each thing that is wrong.
func loadConfig(file string) (config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return config{}, err
	}
	c, err := parseConfig(data)
	if err != nil {
		return config{}, fmt.Errorf("%s:\n%w", file, err)
	}
	return c, nil
}

func parseConfig(data []byte) (config, error) {
	var wrong complaints
	c := defaultConfig()
	if top, ok := openDocument(data, &wrong); ok {
		c.read(top)
	}
	if len(wrong) > 0 {
		return config{}, errors.Join(wrong...)
	}
	return c, nil
}

func (c *config) read(top *object) {
	wrong := top.to
	if top.text("listen", &c.listen) {
		checkAddress(wrong, "listen", c.listen)
	}
	if top.text("admin", &c.admin) {
		checkAddress(wrong, "admin", c.admin)
	}
	if port, bare := strings.CutPrefix(c.admin, ":"); bare {
		c.admin = net.JoinHostPort("127.0.0.1", port)
	}
	if c.listen == c.admin && !strings.HasSuffix(c.admin, ":0") {
		wrong.add("admin", "%s is the address of listen, too", c.admin)
	}
	top.whole("slots", &c.slots, 1)
	if int64(c.slots) > mostSlots {
		wrong.add("slots", "%d is more than %d", c.slots, int64(mostSlots))
	}
	top.duration("client_idle_timeout", &c.clientIdle, 0)
	top.duration("drain", &c.drain, 0)
	top.duration("report", &c.report, 0)

	common := defaultSettings()
	defaults := top.object("defaults")
	common.read(defaults)
	defaults.end()

	before := len(*wrong)
	for name, o := range top.object("services").objects() {
		c.services = append(c.services, readService(name, o, common))
		o.end()
	}
	if len(c.services) == 0 && len(*wrong) == before {
		wrong.add("services", "there must be at least one")
	}
	slices.SortFunc(c.services, func(a, b serviceConfig) int { return cmp.Compare(a.name, b.name) })
	owners := map[string]string{}
	for _, s := range c.services {
		owner, taken := owners[s.prefix]
		if taken && s.prefix != "" {
			wrong.add("services", "%q and %q both have the prefix %q", owner, s.name, s.prefix)
		}
		owners[s.prefix] = s.name
	}
	top.end()
}

// readService reads a service that has the common settings where it says nothing
// else.
func readService(name string, o *object, common settings) serviceConfig {
	s := serviceConfig{name: name, settings: common}
	s.breaker = common.breaker.Clone()
	if name == "" {
		o.to.add(o.path, "the name is empty")
	}
	var text string
	if o.required("prefix", `the paths that are for the service, such as "/api/orders"`, &text) {
		s.prefix = readPrefix(o.to, o.at("prefix"), text)
	}
	if o.required("url", `where the service is, such as "http://orders.internal:8080"`, &text) {
		s.url = readURL(o.to, o.at("url"), text)
	}
	s.read(o)
	return s
}

func checkAddress(wrong *complaints, path, address string) {
	_, port, err := net.SplitHostPort(address)
	if err != nil || !isPort(port) {
		wrong.add(path, `%q is not host:port, such as "127.0.0.1:8080"`, address)
	}
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// readPrefix returns prefix with a "/" at its end.
func readPrefix(wrong *complaints, where, prefix string) string {
	whole := strings.TrimSuffix(prefix, "/") + "/"
	clean := strings.TrimSuffix(path.Clean(whole), "/") + "/"
	if !strings.HasPrefix(prefix, "/") || whole != clean || strings.ContainsAny(whole, "{}?#% \t\n") {
		wrong.add(where, `%q is not the beginning of a path, such as "/api/orders"`, prefix)
		return ""
	}
	return whole
}

// readURL returns a URL that paths can be added to.
func readURL(wrong *complaints, where, text string) *url.URL {
	shown := text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		shown = "…" + text[i:] // before it there may be a password
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		wrong.add(where, `%q is not a URL such as "http://orders.internal:8080"`, shown)
	case u.User != nil:
		wrong.add(where, "it names a user, which the gateway would not send")
	case !isPort(cmp.Or(u.Port(), "80")):
		wrong.add(where, "%q has no port that there is", shown)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		wrong.add(where, "%q must end with its path", shown)
	}
	return u
}
