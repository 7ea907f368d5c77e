package canary

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// request is what a test's requests carry.
type request struct{ user, device, address string }

var lookups = []Lookup[request]{
	{FromUser, func(r request) string { return r.user }},
	{FromDevice, func(r request) string { return r.device }},
	{FromAddress, func(r request) string { return r.address }},
}

// links is Links in memory.
type links map[string]string

func (l links) Linked(user string) string { return l[user] }
func (l links) Link(user, device string)  { l[user] = device }

func TestIdentifier_FirstValidAnswerCounts(t *testing.T) {
	f := sluice.Must(NewIdentifier(lookups))
	for want, r := range map[Identity]request{
		{"alice", FromUser}:    {"alice", "d1", "10.0.0.1"},
		{"d1", FromDevice}:     {"", "d1", "10.0.0.1"},
		{"d2", FromDevice}:     {"Anonymous", "d2", ""},
		{"a1", FromAddress}:    {"null", "00000000-0000-0000-0000-000000000000", "a1"},
		{"a2", FromAddress}:    {strings.Repeat("x", MaxID+1), "d\x00", "a2"},
		{"用户", FromUser}:       {"用户", "", ""},
		{" alice ", FromUser}:  {" alice ", "", ""}, // nothing is trimmed
		{"", 0}:                {"-", "0", "\xff"},
		{"undefine", FromUser}: {"undefine", "", ""},
	} {
		assert.Equal(t, want, f.Identify(r), "%+v", r)
	}
	all := sluice.Must(NewIdentifier(lookups, WithRejectIDs()))
	assert.Equal(t, Identity{"-", FromUser}, all.Identify(request{user: "-"}))
	own := sluice.Must(NewIdentifier(lookups, WithRejectIDs("Nobody")))
	assert.Equal(t, Identity{"0", FromDevice}, own.Identify(request{user: "NOBODY", device: "0"}))
	var none *Identifier[request]
	assert.Equal(t, Identity{}, none.Identify(request{user: "alice"}))
}

func TestNewIdentifier_Complains(t *testing.T) {
	_, err := NewIdentifier([]Lookup[request]{{Source: FromUser}, {99, func(request) string { return "" }}}, nil, WithContinuity(9))
	for _, says := range []string{
		"canary: lookup 0 (user) has no Find", "canary: lookup 1 has source 99", "canary: option 0 is nil",
		"canary: Continuity 9 is not one of prefer_user, prefer_device, link_on_login",
	} {
		assert.ErrorContains(t, err, says)
	}
	_, err = NewIdentifier(lookups, WithContinuity(LinkOnLogin))
	assert.ErrorContains(t, err, "link_on_login needs WithLinks")
	text, err := PreferDevice.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, "prefer_device", string(text))
}

// Signing in changes the version of 2p(1−p) of the users, unless the identity stays.
//
// https://github.com/PostHog/posthog/pull/41281,
// https://github.com/flagship-io/flagship-react-sdk/issues/107.
func TestComplaint14_LoginFlipsTheVersion(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(10))))
	version := func(f *Identifier[request], r request) string {
		who := f.Identify(r)
		return p.Decide(Input{ID: who.ID, Source: who.Source}).Version.Name()
	}
	const n = 20_000
	flips := func(f *Identifier[request]) (login, device int) {
		for i := range n {
			user, first, second := fmt.Sprint("user", i), fmt.Sprint("phone", i), fmt.Sprint("laptop", i)
			before := version(f, request{device: first})
			after := version(f, request{user: user, device: first})
			if before != after {
				login++
			}
			if after != version(f, request{user: user, device: second}) {
				device++
			}
		}
		return login, device
	}
	login, device := flips(sluice.Must(NewIdentifier(lookups)))
	assert.InDelta(t, n*0.18, login, 250, "PreferUser: 2p(1−p)")
	assert.Zero(t, device, "but one version on all devices")
	login, device = flips(sluice.Must(NewIdentifier(lookups, WithContinuity(PreferDevice))))
	assert.Zero(t, login)
	assert.InDelta(t, n*0.18, device, 250, "PreferDevice: each device has its own")
	login, device = flips(sluice.Must(NewIdentifier(lookups, WithContinuity(LinkOnLogin), WithLinks(links{}))))
	assert.Zero(t, login+device, "LinkOnLogin: neither")

	known := links{"bob": "phone"}
	f := sluice.Must(NewIdentifier(lookups, WithContinuity(LinkOnLogin), WithLinks(known)))
	assert.Equal(t, Identity{"phone", FromLink}, f.Identify(request{user: "bob"}))
	assert.Equal(t, Identity{"carol", FromUser}, f.Identify(request{user: "carol"}), "no device is known")
	assert.Len(t, known, 1)
}

// A shared placeholder would make a rollout all or nothing: every visitor had the same
// anonymous id in https://github.com/AudiusProject/audius-client/pull/446.
func TestComplaint14_APlaceholderIsNobody(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(50))))
	f := sluice.Must(NewIdentifier(lookups))
	seen := map[string]bool{}
	for range 200 {
		who := f.Identify(request{user: "anonymous", device: "null"})
		seen[p.Decide(Input{ID: who.ID, Source: who.Source}).Version.Name()] = true
	}
	assert.Len(t, seen, 2)
}

// The first request of a visitor is decided by the id that it is given, so that the
// second one agrees. Envoy picks at random first, sets the cookie later, and the second
// request may land elsewhere.
func TestIssue_FirstAndSecondRequestAgree(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(30))))
	f := sluice.Must(NewIdentifier(lookups, WithIssue()))
	ids := map[string]bool{}
	for range 1000 {
		who := f.Identify(request{})
		require.Equal(t, Issued, who.Source)
		require.Equal(t, who.ID, IssuedID(who.ID))
		require.True(t, ValidID(who.ID))
		first := p.Decide(Input{ID: who.ID, Source: who.Source})
		require.Equal(t, Split, first.Reason)
		again := f.Identify(request{device: who.ID})
		require.Equal(t, Identity{who.ID, FromDevice}, again)
		require.Same(t, first.Version, p.Decide(Input{ID: again.ID, Source: again.Source}).Version)
		ids[who.ID] = true
	}
	assert.Len(t, ids, 1000)
	n := p.Snapshot().Versions[0].Identities
	assert.Equal(t, n["issued"], n["device"])
}

func TestIDs(t *testing.T) {
	for _, id := range []string{"", "short", strings.Repeat("a", 21), strings.Repeat("a", 23), strings.Repeat("a", 21) + "!", strings.Repeat("a", 20) + "é"} {
		assert.Empty(t, IssuedID(id), id)
	}
	assert.Len(t, IssuedID("AZaz09-_AZaz09-_AZaz09"), 22)
	assert.True(t, ValidID(strings.Repeat("x", MaxID)))
	for _, id := range []string{"", strings.Repeat("x", MaxID+1), "a\nb", "\x7f", "\xc3"} {
		assert.False(t, ValidID(id), "%q", id)
	}
	assert.Equal(t, "a", OneValue([]string{"a"}))
	assert.Empty(t, OneValue([]string{"a", "b"}), "nobody can say which is meant")
	assert.Empty(t, OneValue(nil))
	for in, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:2:aaaa::1%eth0": "2001:db8:1:2::/64",
	} {
		assert.Equal(t, want, AddressID(netip.MustParseAddr(in)))
	}
	assert.Empty(t, AddressID(netip.Addr{}))
}
