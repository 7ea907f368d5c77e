package breaker

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// group is the key under which every attribute of a record stands.
const group = "sluice"

func logChange(l *slog.Logger, e Event) {
	level := slog.LevelInfo
	if e.To == Open {
		level = slog.LevelWarn
	}
	if !l.Enabled(e.Ctx, level) {
		return
	}
	attrs := []any{
		slog.String("resource", e.Name), slog.String("from", e.From.String()), slog.String("to", e.To.String()),
		slog.String("cause", e.Cause.Reason.String()), slog.String("why", e.Cause.String()),
		slog.Int64("bad", e.Cause.Bad), slog.Int64("requests", e.Cause.Total),
	}
	if e.To == Open {
		attrs = append(attrs, slog.Duration("open_for", e.OpenFor), slog.Time("retry_at", e.Time.Add(e.OpenFor)))
	}
	l.LogAttrs(e.Ctx, level, "breaker: state changed", slog.Group(group, attrs...))
}

// tell gives one event to the logger and to every listener. A panic or Goexit in
// one does not keep it from the others.
func (b *Breaker) tell(e Event) { b.tellFrom(-1, e) }

// tellFrom begins with the listener of that number; -1 is the logger.
func (b *Breaker) tellFrom(i int, e Event) {
	if i == len(b.hooks.onChange) {
		return
	}
	defer b.tellFrom(i+1, e)
	defer b.caught()
	switch {
	case i >= 0:
		b.hooks.onChange[i](e)
	case b.hooks.logger != nil:
		logChange(b.hooks.logger, e)
	}
}

// caught ends a listener's panic, counts it and logs it.
func (b *Breaker) caught() {
	recovered := recover()
	if recovered == nil {
		return
	}
	b.history.Load().panics.Add(1)
	if l := b.hooks.logger; l != nil {
		defer func() { _ = recover() }() // it may be the logger that panics
		l.LogAttrs(context.Background(), slog.LevelError, "breaker: a listener panicked",
			slog.Group(group, slog.String("resource", b.name), slog.Any("panic", recovered)))
	}
}

func (b *Breaker) logForced(mode Mode, ttl time.Duration) {
	if l := b.hooks.logger; l != nil {
		l.LogAttrs(context.Background(), slog.LevelWarn, "breaker: override",
			slog.Group(group, slog.String("resource", b.name), slog.String("mode", mode.String()), slog.Duration("ttl", ttl)))
	}
}

func (b *Breaker) logUpdate(err error) {
	l := b.hooks.logger
	if l == nil {
		return
	}
	name := slog.String("resource", b.name)
	if err != nil {
		l.LogAttrs(context.Background(), slog.LevelError, "breaker: configuration rejected", slog.Group(group, name, slog.String("error", err.Error())))
		return
	}
	l.LogAttrs(context.Background(), slog.LevelInfo, "breaker: configuration changed", slog.Group(group, name))
}

// logRefused logs one refused call a second. Which one is left to chance, so a
// logger that panics must not end it.
func (b *Breaker) logRefused(ctx context.Context, refusal *OpenError, now int64) {
	defer func() { _ = recover() }()
	next := b.history.Load().nextLog.Load()
	if now < next || !b.hooks.logger.Enabled(ctx, slog.LevelDebug) ||
		!b.history.Load().nextLog.CompareAndSwap(next, clock.After(now, time.Second)) {
		return
	}
	b.hooks.logger.LogAttrs(ctx, slog.LevelDebug, "breaker: refused",
		slog.Group(group, slog.String("resource", b.name), slog.String("reason", refusal.Reason())))
}
