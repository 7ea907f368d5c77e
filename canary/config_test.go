package canary

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func TestConfig_Validate(t *testing.T) {
	c := DefaultConfig()
	require.ErrorContains(t, c.Validate(), "canary: Stable is empty")
	c.Stable = "v1"
	require.NoError(t, c.Validate())
	require.Error(t, Config{}.Validate())

	bad := Config{
		Stable: "v1", Salt: strings.Repeat("s", 1025), HashSpec: 2, NoIdentity: 7,
		Versions: []VersionConfig{
			{"", 0, Percent(60)}, {"v1", -1, Percent(60)}, {"v2", 16, Percent(0.00001)}, {"v2", 0, 0}, {"a\nb", 3, 0},
			{strings.Repeat("x", 129), 4, 0}, {"\xff", 5, 0},
		},
	}
	err := bad.Validate()
	for _, says := range []string{
		"Salt has 1025 bytes, more than 1024", "HashSpec 2 is not 1", "NoIdentity 7 is not one of random, stable",
		"Versions[0].Name is empty", `Versions[1].Name "v1" is the stable version`, "Versions[1].Lane -1 is not in [0, 16)",
		"Versions[2].Lane 16", "weight 1e-05% is no whole ppm (0.0001%), as Weight of Versions[2]",
		`Versions[3].Name "v2" is that of Versions[2] too`, "Versions[3].Lane 0 is that of Versions[0] too",
		`Versions[4].Name "a\nb" has control characters`, "Versions[5].Name has 129 bytes", `Versions[6].Name "\xff" has control`,
		"Versions have weights of 1200000 ppm together, more than 1000000",
	} {
		assert.ErrorContains(t, err, says)
	}
}

func TestConfig_JSON(t *testing.T) {
	c := Config{
		Stable: "v1", Salt: "s", HashSpec: 1, NoIdentity: StableVersion,
		Versions: []VersionConfig{{"v2", 0, Percent(5)}, {"v3", 1, 0}},
	}
	text, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"stable":"v1","salt":"s","hash_spec":1,"no_identity":"stable",
		"versions":[{"name":"v2","lane":0,"weight":"5%"},{"name":"v3","lane":1,"weight":"0%"}]}`, string(text))
	got := DefaultConfig()
	require.NoError(t, json.Unmarshal(text, &got))
	assert.Equal(t, c, got)

	kept := c.Clone()
	require.NoError(t, json.Unmarshal([]byte(`{"salt":"t"}`), &kept))
	assert.Equal(t, c.Versions, kept.Versions, "what is absent stays")
	list := kept.Versions
	require.NoError(t, json.Unmarshal([]byte(`{"versions":[{"name":"v9","lane":3,"weight":"1ppm"}]}`), &kept))
	assert.Equal(t, []VersionConfig{{"v9", 3, 1}}, kept.Versions, "a list is replaced whole")
	assert.Equal(t, "v2", list[0].Name, "and not written over")
	require.NoError(t, json.Unmarshal([]byte(`{"versions":[]}`), &kept))
	assert.Empty(t, kept.Versions)

	for text, says := range map[string]string{
		`{"stabel":"v1"}`: "stabel: unknown key",
		`{"versions":[{"name":"a","lane":0,"weight":"5%","x":1}]}`: "versions[0].x: unknown key",
		`{"versions":[{"name":"a","weight":"5%"}]}`:                "versions[0]: a version has name, lane and weight",
		`{"versions":[{"name":"a","lane":0,"weight":0.05}]}`:       "versions[0].weight",
		`{"versions":[{"name":"a","lane":0,"weight":"5"}]}`:        "versions[0].weight",
		`{"no_identity":"coin"}`:                                   "no_identity",
		`{"hash_spec":"1"}`:                                        "hash_spec",
	} {
		before := c.Clone()
		err := json.Unmarshal([]byte(text), &before)
		require.ErrorContains(t, err, says)
		assert.Equal(t, c, before, "it is as before")
	}
	out, err := json.Marshal(Config{})
	require.NoError(t, err)
	assert.Contains(t, string(out), "NoIdentity(0)", "an invalid one can be shown")
}

func TestConfig_Equal(t *testing.T) {
	a := Config{Stable: "v1", HashSpec: 1, NoIdentity: RandomVersion, Versions: []VersionConfig{{"v2", 0, 1}, {"v3", 1, 2}}}
	b := a.Clone()
	b.Versions[0], b.Versions[1] = b.Versions[1], b.Versions[0]
	assert.True(t, a.Equal(b), "only lanes matter")
	b.Versions[0].Weight = 3
	assert.False(t, a.Equal(b))
}

func TestNew_SaysAllThatIsWrong(t *testing.T) {
	_, err := New("", "", nil, WithOnChange(nil), WithVersion("v2", 0, Percent(101)), WithHashSpec(0), WithMaxKeys(5),
		WithConfig(Config{Stable: "other"}))
	for _, says := range []string{
		"the name is empty", "option 0 is nil", "WithOnChange has a nil listener", "WithMaxKeys and WithRoute are for NewGroup",
		`WithConfig has Stable "other", and the argument is ""`, "HashSpec 0",
	} {
		assert.ErrorContains(t, err, says)
	}
	p := sluice.Must(New("shop", "v1", WithConfig(Config{HashSpec: 1, NoIdentity: StableVersion}), WithVersion("v2", 0, 1), WithVersion("v2", 3, 2),
		WithSalt("s"), WithNoIdentity(RandomVersion), WithHashSpec(1)))
	assert.Equal(t, Config{
		Stable: "v1", Versions: []VersionConfig{{"v2", 3, 2}}, Salt: "s", HashSpec: 1, NoIdentity: RandomVersion,
	}, p.Config(), "the last one wins")
	c := p.Config()
	c.Versions[0].Weight = 9
	assert.Equal(t, Weight(2), p.Config().Versions[0].Weight, "nothing is shared")
}
