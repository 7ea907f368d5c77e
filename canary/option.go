package canary

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// Option sets one thing of a new Picker. The last one wins; they start from
// DefaultConfig and the stable version given to New.
type Option func(*settings)

// WithVersion adds a version beside the stable one, in a lane of its own and with a
// weight; a second one of the same name replaces the first.
//
// Default: none, the stable version serves all.
func WithVersion(name string, lane int, w Weight) Option {
	return func(s *settings) {
		v := VersionConfig{name, lane, w}
		if i := slices.IndexFunc(s.Versions, func(o VersionConfig) bool { return o.Name == name }); i >= 0 {
			s.Versions[i] = v
			return
		}
		s.Versions = append(s.Versions, v)
	}
}

// WithSalt sets the salt. Give two rollouts the same if the same users are to be first
// in both, such as a frontend and its backend; else leave it, or the same unlucky ones
// are first every time.
//
// Default: the Picker's name, "/" and the stable version's name.
func WithSalt(salt string) Option { return func(s *settings) { s.Salt = salt } }

// WithHashSpec sets the version of the hash spec.
//
// Default: 1, in every release.
func WithHashSpec(n int) Option { return func(s *settings) { s.HashSpec = n } }

// WithHash sets another function for the point of an identity, below 1 000 000, such
// as those in canary/hashes that agree with other products. It is called on the way of
// every request, gets the salt in force, and must give the same always and everywhere.
// The Point of a Decision stays that of hash spec 1.
//
// Default: hash spec 1.
func WithHash(point func(salt, id string) uint32) Option {
	return func(s *settings) { s.hash = point }
}

// WithNoIdentity says who serves requests without an identity.
//
// Default: RandomVersion.
func WithNoIdentity(n NoIdentity) Option { return func(s *settings) { s.NoIdentity = n } }

// WithTargeting sets rules, or a feature flag: f returns the version that is to serve
// the request, or "" if it has no opinion. It is called on the way of every request
// that has neither a granted override nor a Target; a name that the Picker does not
// know is ignored and counted. Targeted requests are left out when versions are
// compared.
//
// Default: none.
func WithTargeting(f func(Input) string) Option { return func(s *settings) { s.targeting = f } }

// WithTokens lets signed tokens override, see Input.Token.
//
// Default: none, tokens are ignored and counted.
func WithTokens(t *Tokens) Option { return func(s *settings) { s.tokens = t } }

// WithoutCounts leaves decisions uncounted: Snapshot and metrics say 0. It saves one
// atomic addition for each.
//
// Default: decisions are counted by version and reason.
func WithoutCounts() Option { return func(s *settings) { s.uncounted = true } }

// WithConfig replaces all data set so far by c, so it comes first. A Stable in c must
// be the one given to New, or "".
//
// Default: DefaultConfig.
func WithConfig(c Config) Option {
	return func(s *settings) {
		if c.Stable == "" {
			c.Stable = s.Stable
		}
		if c.Stable != s.Stable {
			s.errs = append(s.errs, fmt.Errorf("canary: WithConfig has Stable %q, and the argument is %q", c.Stable, s.Stable))
		}
		s.Config = c.Clone()
	}
}

// WithOnChange adds a listener for changes of the plan. It is called after the change
// is in force, with no lock held, one change at a time and in order; it may call the
// Picker. At most 1 024 wait behind a slow one, the oldest are dropped and counted; a
// panic is caught and counted.
//
// Default: none.
func WithOnChange(f func(Change)) Option {
	return func(s *settings) {
		if f == nil {
			s.errs = append(s.errs, errors.New("canary: WithOnChange has a nil listener"))
			return
		}
		s.onChange = append(s.onChange, f)
	}
}

// WithLogger logs every change of the plan, rollbacks as warnings.
//
// Default: nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

// hooks is what a Picker has beside its data. They never change.
type hooks struct {
	hash      func(salt, id string) uint32
	targeting func(Input) string
	tokens    *Tokens
	uncounted bool
	onChange  []func(Change)
	logger    *slog.Logger
}

// settings is what the options fill in.
type settings struct {
	Config
	hooks
	errs  complaints
	group *groupSettings // nil until a group option is used
}

func newSettings(stable string) *settings {
	s := &settings{Config: DefaultConfig()}
	s.Stable = stable
	return s
}

func (s *settings) apply(opts []Option) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("canary: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *settings) check() error { return errors.Join(append(s.errs, s.Validate())...) }
