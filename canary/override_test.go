package canary

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

var (
	oldKey = []byte(strings.Repeat("o", 32))
	newKey = []byte(strings.Repeat("n", 40))
)

func inAnHour() time.Time { return clock.Wall(clock.Now()).Add(time.Hour) }

func TestTokens(t *testing.T) {
	tokens := sluice.Must(NewTokens(newKey, nil))
	want := Token{"shop", "v2.1 β", "alice@example.com", inAnHour()}
	text, err := tokens.Sign(want)
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.[\w-]+\.[\w-]+\.\d+\.[\w-]+\.[\w-]{43}$`, text)
	got, err := tokens.Verify(text, "shop", "alice@example.com")
	require.NoError(t, err)
	assert.Equal(t, want.Expires.Unix(), got.Expires.Unix())
	got.Expires = want.Expires
	assert.Equal(t, want, got)

	_, err = tokens.Verify(text, "search", "alice@example.com")
	require.ErrorIs(t, err, ErrTokenRollout)
	require.ErrorIs(t, err, ErrToken)
	_, err = tokens.Verify(text, "shop", "mallory")
	require.ErrorIs(t, err, ErrTokenSubject)
	for i := range text { // every change of a character spoils it
		broken := []byte(text)
		broken[i] ^= 1
		_, err = tokens.Verify(string(broken), "shop", "alice@example.com")
		require.ErrorIs(t, err, ErrToken, "character %d", i)
		require.NotErrorIs(t, err, ErrTokenRollout, "nothing is made of what is not signed")
	}
	for _, bad := range []string{"", ".", "v1", "v1.a.b.c", text + ".", "x" + text, text[:len(text)-1], text + "=", strings.Repeat("a.", 1000)} {
		_, err = tokens.Verify(bad, "shop", "alice@example.com")
		require.ErrorIs(t, err, ErrToken, bad)
	}
	var none *Tokens
	_, err = none.Verify(text, "shop", "alice@example.com")
	require.ErrorIs(t, err, ErrToken)
	_, err = none.Sign(want)
	require.ErrorContains(t, err, "no Tokens to sign with")
}

func TestTokens_LastForADayAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := sluice.Must(NewTokens(newKey, nil))
		now := time.Now()
		for _, at := range []time.Time{now, now.Add(-time.Second), now.Add(MaxTokenLife + 1), {}} {
			_, err := tokens.Sign(Token{Rollout: "shop", Version: "v2", Expires: at})
			require.ErrorContains(t, err, "Token.Expires is")
		}
		text, err := tokens.Sign(Token{Rollout: "shop", Version: "v2", Expires: now.Add(MaxTokenLife)})
		require.NoError(t, err)
		time.Sleep(MaxTokenLife - 1)
		_, err = tokens.Verify(text, "shop", "anybody")
		require.NoError(t, err)
		time.Sleep(time.Nanosecond)
		_, err = tokens.Verify(text, "shop", "anybody")
		require.ErrorIs(t, err, ErrTokenExpired)
	})
	// One that was signed by other means for longer is not accepted either.
	tokens := sluice.Must(NewTokens(newKey, nil))
	body := "v1." + encode("shop") + "." + encode("v2") + ".99999999999."
	_, err := tokens.Verify(body+"."+encode(string(sign(newKey, body))), "shop", "")
	require.ErrorIs(t, err, ErrTokenExpired)
}

func TestTokens_KeysChange(t *testing.T) {
	before := sluice.Must(NewTokens(oldKey, nil))
	during := sluice.Must(NewTokens(newKey, oldKey))
	after := sluice.Must(NewTokens(newKey, nil))
	token := Token{Rollout: "shop", Version: "v2", Expires: inAnHour()}
	old, err := before.Sign(token)
	require.NoError(t, err)
	fresh, err := during.Sign(token)
	require.NoError(t, err)
	for text, accepted := range map[string][3]bool{old: {true, true, false}, fresh: {false, true, true}} {
		for i, tokens := range []*Tokens{before, during, after} {
			_, err := tokens.Verify(text, "shop", "")
			assert.Equal(t, accepted[i], err == nil)
		}
	}
	_, err = NewTokens([]byte("short"), []byte{})
	require.ErrorContains(t, err, "a key has 5 bytes, fewer than 32")
	_, err = NewTokens(newKey, []byte{})
	require.ErrorContains(t, err, "a key has 0 bytes")
	_, err = after.Sign(Token{Version: strings.Repeat("v", 129), Subject: strings.Repeat("s", 129), Expires: inAnHour()})
	for _, says := range []string{"Token.Rollout is empty", "Token.Version has 129 bytes", "Token.Subject has 129 bytes"} {
		assert.ErrorContains(t, err, says)
	}
}

// Every way in which a token is not good is counted, and none fails the request.
func TestDecide_Tokens(t *testing.T) {
	tokens := sluice.Must(NewTokens(newKey, oldKey))
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, 0), WithVersion("bad", 1, 0), WithTokens(tokens)))
	require.NoError(t, p.Rollback("bad", ""))
	signed := func(by *Tokens, token Token) string {
		text, err := by.Sign(token)
		require.NoError(t, err)
		return text
	}
	for _, c := range []struct {
		token, want, ignored string
	}{
		{signed(tokens, Token{"shop", "v2", "", inAnHour()}), "v2", ""},
		{signed(tokens, Token{"shop", "v2", "alice", inAnHour()}), "v2", ""},
		{signed(tokens, Token{"shop", "always", "", inAnHour()}), "v2", ""},
		{signed(tokens, Token{"shop", "v2", "bob", inAnHour()}), "v1", "override/other_subject"},
		{signed(tokens, Token{"search", "v2", "", inAnHour()}), "v1", "override/other_rollout"},
		{signed(tokens, Token{"shop", "v9", "", inAnHour()}), "v1", "override/unknown_version"},
		{signed(tokens, Token{"shop", "bad", "", inAnHour()}), "v1", "override/rolled_back"},
		{signed(sluice.Must(NewTokens([]byte(strings.Repeat("x", 32)), nil)), Token{"shop", "v2", "", inAnHour()}), "v1", "override/bad_token"},
		{"v2", "v1", "override/bad_token"},
	} {
		before := p.Snapshot().Ignored
		d := p.Decide(Input{ID: "alice", Token: c.token})
		assert.Equal(t, c.want, d.Version.Name())
		assert.Equal(t, c.want == "v2", d.Reason == Override)
		assert.Equal(t, c.ignored == "", before["override/bad_token"] == p.Snapshot().Ignored["override/bad_token"] && c.ignored == "")
		if c.ignored != "" {
			assert.Equal(t, before[c.ignored]+1, p.Snapshot().Ignored[c.ignored])
		}
	}
	synctest.Test(t, func(t *testing.T) {
		text := signed(tokens, Token{"shop", "v2", "", inAnHour()})
		time.Sleep(2 * time.Hour)
		p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, 0), WithTokens(tokens)))
		assert.Equal(t, "v1", p.Decide(Input{ID: "alice", Token: text}).Version.Name())
		assert.Equal(t, int64(1), p.Snapshot().Ignored["override/expired"])
	})
}

func FuzzTokens(f *testing.F) {
	f.Add("v1.c2hvcA.djI.1790000000..c2ln", "shop", "v2", "alice")
	tokens := sluice.Must(NewTokens(newKey, oldKey))
	f.Fuzz(func(t *testing.T, text, rollout, version, subject string) {
		if _, err := tokens.Verify(text, rollout, subject); err != nil {
			require.ErrorIs(t, err, ErrToken)
		}
		token := Token{rollout, version, subject, inAnHour()}
		signed, err := tokens.Sign(token)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(signed), maxToken)
		got, err := tokens.Verify(signed, rollout, subject)
		require.NoError(t, err)
		require.Equal(t, token.Version, got.Version)
	})
}
