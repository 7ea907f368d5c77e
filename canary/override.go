package canary

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// MaxTokenLife is how far away the end of a token may be, when it is signed and when
// it is checked.
const MaxTokenLife = 24 * time.Hour

// Token is leave to override: whoever shows it may choose this version.
type Token struct {
	// Rollout is the name of the Picker.
	Rollout string
	// Version is a version's name, or "always" or "never".
	Version string
	// Subject, if not "", is the only identity that may show it.
	Subject string
	// Expires is when it ends, by the wall clock, in whole seconds.
	Expires time.Time
}

// Tokens signs overrides and checks them, with HMAC-SHA256. A token is six fields
// joined by dots, all but the first and the fourth in unpadded base64url:
//
//	v1.rollout.version.expiry.subject.signature
//
// The expiry is in seconds since 1970, and the signature is over all that stands
// before its dot. A token is leave for whoever has it, so keep it as secret as a
// password; it lasts for a day at most.
//
// To change the key, make Tokens with the new one and the old one: it signs with the
// first and accepts both. Sign and Verify may be called concurrently; they allocate.
// A nil *Tokens accepts nothing.
type Tokens struct{ keys [][]byte }

// minKey is as many bytes as the signature has.
const minKey = sha256.Size

// NewTokens returns Tokens that sign with key, and accept those signed with former
// too, if that is not nil. Keys have at least 32 bytes, and are copied.
func NewTokens(key, former []byte) (*Tokens, error) {
	t := &Tokens{keys: [][]byte{append([]byte(nil), key...)}}
	if former != nil {
		t.keys = append(t.keys, append([]byte(nil), former...))
	}
	for _, k := range t.keys {
		if len(k) < minKey {
			return nil, fmt.Errorf("canary: a key has %d bytes, fewer than %d", len(k), minKey)
		}
	}
	return t, nil
}

// Sign returns the text of a token.
func (t *Tokens) Sign(token Token) (string, error) {
	var v complaints
	v.unless(t != nil, "no Tokens to sign with")
	v.named("Token.Rollout", token.Rollout, maxPickerName)
	v.name("Token.Version", token.Version)
	v.unless(len(token.Subject) <= MaxID, "Token.Subject has %d bytes, more than %d", len(token.Subject), MaxID)
	left := token.Expires.Sub(clock.Wall(clock.Now()))
	v.unless(left > 0 && left <= MaxTokenLife, "Token.Expires is %v away, not in (0s, %v]", left, MaxTokenLife)
	if len(v) > 0 {
		return "", errors.Join(v...)
	}
	body := strings.Join([]string{
		"v1", encode(token.Rollout), encode(token.Version), strconv.FormatInt(token.Expires.Unix(), 10), encode(token.Subject),
	}, ".")
	return body + "." + encode(string(sign(t.keys[0], body))), nil
}

// Verify returns what a token says, if it is good for that rollout and identity. Its
// errors match ErrToken, and ErrTokenExpired, ErrTokenRollout or ErrTokenSubject where
// it is signed but not good.
func (t *Tokens) Verify(text, rollout, id string) (Token, error) {
	token, err := t.open(text)
	if err != nil {
		return Token{}, err
	}
	left := token.Expires.Sub(clock.Wall(clock.Now()))
	switch {
	case left <= 0 || left > MaxTokenLife:
		err = ErrTokenExpired
	case token.Rollout != rollout:
		err = ErrTokenRollout
	case token.Subject != "" && token.Subject != id:
		err = ErrTokenSubject
	default:
		return token, nil
	}
	return Token{}, fmt.Errorf("%w: %w", ErrToken, err)
}

// verify returns the version that a token lets choose.
func (t *Tokens) verify(text, rollout, id string) (string, error) {
	token, err := t.Verify(text, rollout, id)
	return token.Version, err
}

// maxToken is longer than any token that Sign makes.
const maxToken = 1024

// open returns what a signed token says, whether it is good for anything or not. The
// signature comes first: nothing is made of a text that we did not write.
func (t *Tokens) open(text string) (Token, error) {
	body, signature, ok := cutLast(text)
	if t == nil || len(text) > maxToken || !ok || !t.signed(body, signature) {
		return Token{}, ErrToken
	}
	fields := strings.Split(body, ".")
	if len(fields) != 5 || fields[0] != "v1" {
		return Token{}, ErrToken
	}
	expires, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return Token{}, ErrToken
	}
	token := Token{Expires: time.Unix(expires, 0)}
	for i, into := range map[int]*string{1: &token.Rollout, 2: &token.Version, 4: &token.Subject} {
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(fields[i])
		if err != nil {
			return Token{}, ErrToken
		}
		*into = string(decoded)
	}
	return token, nil
}

// signed reports whether one of the keys has signed body. It takes as long for a
// signature that is nearly right as for one that is all wrong. Texts are compared, and not
// what they decode to: a decoder passes over ends of lines.
func (t *Tokens) signed(body, signature string) bool {
	good := false
	for _, key := range t.keys {
		good = hmac.Equal([]byte(signature), []byte(encode(string(sign(key, body))))) || good
	}
	return good
}

func sign(key []byte, body string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(body))
	return mac.Sum(nil)
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
