package canary

import (
	"context"
	"log/slog"
)

// group is the key under which every attribute of a record stands.
const group = "sluice"

func logChange(l *slog.Logger, c Change) {
	level := slog.LevelInfo
	if c.Action == ActionRollback || c.Action == ActionRollbackOver || c.Action == ActionKill {
		level = slog.LevelWarn
	}
	attrs := []any{
		slog.String("resource", c.Name), slog.String("action", c.Action.String()),
		slog.Uint64("generation", c.Generation), slog.String("moved", c.Diff.String()),
	}
	if c.Version != "" {
		attrs = append(attrs, slog.String("version", c.Version))
	}
	if c.Cause != "" {
		attrs = append(attrs, slog.String("cause", c.Cause))
	}
	l.LogAttrs(context.Background(), level, "canary: plan changed", slog.Group(group, attrs...))
}

// tell gives one change to the logger and to every listener. A panic or Goexit in one
// does not keep it from the others.
func (p *Picker) tell(c Change) { p.tellFrom(-1, c) }

// tellFrom begins with the listener of that number; -1 is the logger.
func (p *Picker) tellFrom(i int, c Change) {
	if i == len(p.onChange) {
		return
	}
	defer p.tellFrom(i+1, c)
	defer p.caught()
	switch {
	case i >= 0:
		p.onChange[i](c)
	case p.logger != nil:
		logChange(p.logger, c)
	}
}

// caught ends a listener's panic, counts it and logs it.
func (p *Picker) caught() {
	recovered := recover()
	if recovered == nil {
		return
	}
	p.panics.Add(1)
	if l := p.logger; l != nil {
		defer func() { _ = recover() }() // it may be the logger that panics
		l.LogAttrs(context.Background(), slog.LevelError, "canary: a listener panicked",
			slog.Group(group, slog.String("resource", p.name), slog.Any("panic", recovered)))
	}
}
