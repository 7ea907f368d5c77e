package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// place is where, when and of what the figures are.
type place struct {
	CPU     string
	Cores   int
	System  string
	Go      string
	Commit  string
	Command string
	Date    string
	Rounds  int
}

// host describes all but the processor, which go test names.
func host(ctx context.Context, p plan) place {
	return place{
		Cores:   runtime.NumCPU(),
		System:  system(),
		Go:      runtime.Version(),
		Commit:  commit(ctx),
		Command: fmt.Sprintf("GOWORK=off go run ./report -count %d -benchtime %s -bench '%s'", p.count, p.benchtime, p.bench),
		Date:    time.Now().UTC().Format(time.DateOnly),
		Rounds:  p.count,
	}
}

// system is the operating system, the architecture and its level, as "linux/amd64 v1".
func system() string {
	s := runtime.GOOS + "/" + runtime.GOARCH
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "GO"+strings.ToUpper(runtime.GOARCH) {
				s += " " + setting.Value
			}
		}
	}
	return s
}

// commit names what was measured, and says so if that is not just the commit.
func commit(ctx context.Context) string {
	id, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", "..", ":!RESULTS.md").Output()
	switch {
	case err != nil:
		return strings.TrimSpace(string(id)) + ", perhaps with changes"
	case len(changed) > 0:
		return strings.TrimSpace(string(id)) + ", with changes that are not committed"
	}
	return strings.TrimSpace(string(id))
}
