package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What it claims it checks itself; so here it is enough that it comes to its end.
func TestPlay(t *testing.T) {
	for _, users := range []string{"1000"} {
		var out, complaints bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-duration", "0", "-users", users}, &out, &complaints), out.String())
		assert.Empty(t, complaints.String())
		t.Log(out.String())
		for _, want := range []string{"promoted: nobody moves", "rolled back after", "and v3 0:", "and 0 elsewhere"} {
			assert.Contains(t, out.String(), want)
		}
	}
}

func TestPlay_EndsWhenInterrupted(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	assert.ErrorIs(t, play(ctx, time.Hour, fewestUsers, &bytes.Buffer{}), enough)
}

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{"-users", "10"}, {"-users", "x"}, {"-duration", "-1s"}, {"more"}, {"-what"}} {
		var out, complaints bytes.Buffer
		assert.ErrorIs(t, run(t.Context(), args, &out, &complaints), errUsage, args)
		assert.NotEmpty(t, complaints.String())
		assert.Empty(t, out.String())
	}
}
