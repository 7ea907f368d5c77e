package retry

import "context"

type (
	attemptKey struct{}
	depositKey struct{}
)

// AttemptOf returns the number of the attempt that ctx belongs to: 1 for the first,
// and for a call that nobody repeats. A hedge is the second. Code further in can send
// a further attempt to another replica, or mark it in a header or a log.
func AttemptOf(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return max(n, 1)
}

// WithoutRetries returns a ctx whose calls are made once: no Policy repeats them, and
// Hedge sends no second one. It is for a caller who repeats them himself; policies and
// hedges do the same for their further attempts, so that three attempts inside three
// do not become nine.
func WithoutRetries(ctx context.Context) context.Context { return withAttempt(ctx, AttemptOf(ctx)) }

func withAttempt(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, attemptKey{}, n)
}

// repeated reports whether ctx belongs to a call that is to be made once, because
// somebody further out repeats it.
func repeated(ctx context.Context) bool { return ctx.Value(attemptKey{}) != nil }

// withDeposit marks ctx as that of a call which is counted in b.
func withDeposit(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, depositKey{}, b)
}

// isDeposited reports whether ctx belongs to a call that is counted in b already.
func isDeposited(ctx context.Context, b *Budget) bool {
	counted, _ := ctx.Value(depositKey{}).(*Budget)
	return counted == b
}
