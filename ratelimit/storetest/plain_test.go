package storetest_test

import (
	"context"
	"errors"
	"math/big"
	"runtime"
	"sync"
	"time"

	"github.com/sluicego/sluice/ratelimit"
	"github.com/sluicego/sluice/ratelimit/storetest"
)

// A plainStore is a Store as one would write it who cares for nothing but that it is
// right, in fractions that are never rounded; and with a flaw, if it has one, as one
// would who does not. It can be told to do to itself whatever a Subject can.
type plainStore struct {
	flaw string

	mu      sync.Mutex
	buckets map[any]*plainBucket
	nodes   map[string]map[string]int64
	skew    int64 // microseconds
	slow    time.Duration
	dead    bool
}

type plainBucket struct {
	level    *big.Rat // tokens
	at       int64
	refunded *big.Rat
	born     int64
	rate     ratelimit.Rate
	receipts []plainReceipt
}

type plainReceipt struct {
	level, refunded *big.Rat
	at              int64
}

func newPlainStore(flaw string) *plainStore {
	return &plainStore{flaw: flaw, buckets: map[any]*plainBucket{}, nodes: map[string]map[string]int64{}}
}

func (s *plainStore) subject() storetest.Subject {
	set := func(f func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
	}
	return storetest.Subject{
		Store:  s,
		Step:   func(d time.Duration) { set(func() { s.skew += d.Microseconds() }) },
		Lose:   func() { set(func() { s.buckets = map[any]*plainBucket{} }) },
		Slow:   func(d time.Duration) { set(func() { s.slow = d }) },
		Die:    func() { set(func() { s.dead = true }) },
		Revive: func() { set(func() { s.dead = false }) },
	}
}

// zero is where a plainStore's time begins.
var zero = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

func (s *plainStore) now() int64 { return time.Since(zero).Microseconds() + s.skew }

// reach is how a call comes to the store: it may be late, or not come at all.
func (s *plainStore) reach(ctx context.Context) error {
	s.mu.Lock()
	slow, dead := s.slow, s.dead
	s.mu.Unlock()
	if dead && s.flaw != "a dead store is silent" {
		return errors.New("connection refused")
	}
	if s.flaw == "waits for an answer" {
		time.Sleep(slow)
		return ctx.Err()
	}
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
		}
	}
	if s.flaw == "ignores ctx" {
		return nil
	}
	return ctx.Err()
}

func tokens(n int64) *big.Rat { return big.NewRat(n, 1) }
func smaller(x, y *big.Rat) *big.Rat {
	if x.Cmp(y) < 0 {
		return x
	}
	return y
}
func whole(x *big.Rat) int64       { return new(big.Int).Div(x.Num(), x.Denom()).Int64() } // rounded down
func plus(x, y *big.Rat) *big.Rat  { return new(big.Rat).Add(x, y) }
func minus(x, y *big.Rat) *big.Rat { return new(big.Rat).Sub(x, y) }

// come is how many tokens come in so many microseconds.
func (s *plainStore) come(r ratelimit.Rate, micros int64) *big.Rat {
	perMicro := big.NewRat(r.Tokens, r.Per.Microseconds())
	switch s.flaw {
	case "counts in whole nanoseconds":
		perMicro = big.NewRat(1000, int64(r.Per)/r.Tokens)
	case "refills twice":
		perMicro.Add(perMicro, perMicro)
	}
	return perMicro.Mul(perMicro, tokens(micros))
}

// until is how many microseconds it takes until so many tokens come.
func until(r ratelimit.Rate, n *big.Rat) int64 {
	n = new(big.Rat).Mul(n, big.NewRat(r.Per.Microseconds(), r.Tokens))
	return max(0, -whole(n.Neg(n)))
}

func (s *plainStore) bucket(key ratelimit.StoreKey, q ratelimit.Quota) *plainBucket {
	now := s.now()
	var name any = key
	if s.flaw == "joins names" {
		name = key.Limiter + ":" + key.Key
	}
	b := s.buckets[name]
	if b != nil {
		full := b.at + until(b.rate, minus(tokens(q.Burst), b.level))
		if s.flaw == "rounds expiries down" {
			full = b.at + (full-b.at)/1_000_000*1_000_000
		}
		if now > full && s.flaw != "knows no brim" || s.flaw == "begins anew with a quota" && b.rate != q.Rate {
			b = nil
		}
	}
	if b == nil {
		b = &plainBucket{level: tokens(q.Burst), at: now, refunded: tokens(0), born: now, rate: q.Rate}
		if s.flaw == "unknown keys are empty" {
			b.level = tokens(0)
		}
		s.buckets[name] = b
	}
	if now < b.at && s.flaw != "waits for its clock" {
		b.at, b.born = now, now
	}
	if now > b.at {
		b.level = plus(b.level, s.come(b.rate, now-b.at))
		b.at = now
	}
	if s.flaw != "knows no brim" {
		b.level = smaller(b.level, tokens(q.Burst))
	}
	if s.flaw == "drops fractions" {
		b.level = tokens(whole(b.level))
	}
	if b.rate != q.Rate {
		b.rate, b.born = q.Rate, now
	}
	return b
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (s *plainStore) Take(ctx context.Context, key ratelimit.StoreKey, q ratelimit.Quota, ask ratelimit.Ask) (ratelimit.Grant, error) {
	err := s.reach(ctx)
	if s.flaw == "tries again" && err != nil && ctx.Err() != nil {
		for range 3 {
			_, _ = s.take(key, q, ask)
		}
	}
	if err != nil {
		return ratelimit.Grant{}, err
	}
	return s.take(key, q, ask)
}

func (s *plainStore) take(key ratelimit.StoreKey, q ratelimit.Quota, ask ratelimit.Ask) (g ratelimit.Grant, err error) {
	if s.flaw != "takes nonsense" {
		if err := errors.Join(q.Validate(), ask.Validate(q)); err != nil {
			return g, err
		}
	} else if q.Validate() != nil {
		return g, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(key, q)
	g.Tokens = min(ask.Max, max(0, whole(b.level)))
	if s.flaw == "looks, then takes" {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	if g.Tokens < ask.Min && s.flaw != "grants a part" {
		wait := micros(until(q.Rate, minus(tokens(ask.Min), b.level)))
		if wait <= ask.MaxWait {
			g.Tokens, g.Wait = ask.Min, wait
		} else {
			g.Tokens, g.RetryAfter = 0, wait
		}
	}
	switch {
	case s.flaw == "charges fractions" && g.Tokens > 0 && g.Wait == 0 && g.Tokens == whole(b.level):
		b.level = tokens(0)
	case s.flaw == "charges no reservations" && g.Wait > 0:
	case s.flaw == "charges for looking" && ask.Max == 0:
		b.level = minus(b.level, tokens(1))
	default:
		b.level = minus(b.level, tokens(g.Tokens))
	}
	g.Remaining = max(0, whole(b.level))
	g.ResetAfter = micros(until(q.Rate, minus(tokens(q.Burst), b.level)))
	switch s.flaw {
	case "rounds waits down":
		g.RetryAfter = g.RetryAfter.Truncate(time.Millisecond)
	case "resets with a token":
		g.ResetAfter = q.Rate.Per
	}
	b.receipts = append(b.receipts, plainReceipt{b.level, new(big.Rat).Set(b.refunded), b.at})
	g.Receipt = ratelimit.Receipt{int64(len(b.receipts)), b.born}
	return g, nil
}

func (s *plainStore) Refund(ctx context.Context, key ratelimit.StoreKey, q ratelimit.Quota, r ratelimit.Receipt, n int64) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(key, q)
	back := tokens(n)
	switch {
	case s.flaw == "refunds nothing", s.flaw == "refunds no debt" && b.level.Sign() < 0:
		return nil
	case s.flaw == "refunds all", s.flaw == "refunds to lost keys" && r[1] != b.born:
	case r[1] != b.born:
		return nil
	default:
		take := b.receipts[r[0]-1]
		missing := minus(tokens(q.Burst), take.level)
		missing = minus(missing, s.come(q.Rate, b.at-take.at))
		if s.flaw != "forgets other refunds" {
			missing = minus(missing, minus(b.refunded, take.refunded))
		}
		back = smaller(back, missing)
	}
	if back.Sign() > 0 {
		b.level = smaller(plus(b.level, back), tokens(q.Burst))
		b.refunded = plus(b.refunded, back)
	}
	return nil
}

func (s *plainStore) Debit(ctx context.Context, key ratelimit.StoreKey, q ratelimit.Quota, n int64) error {
	if err := s.reach(ctx); err != nil {
		return err
	}
	if n < 0 {
		return errors.New("a negative debit")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(key, q)
	debt := smaller(b.level, tokens(-q.Burst))
	if s.flaw == "stops debits at 0" {
		debt = tokens(0)
	}
	if b.level = minus(b.level, tokens(n)); b.level.Cmp(debt) < 0 {
		b.level = debt
	}
	return nil
}

func (s *plainStore) Beat(ctx context.Context, limiter, node string, ttl time.Duration) (int64, error) {
	if err := s.reach(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := s.nodes[limiter]
	if nodes == nil {
		nodes = map[string]int64{}
		s.nodes[limiter] = nodes
	}
	nodes[node] = s.now() + ttl.Microseconds()
	if ttl == 0 && s.flaw != "hears no goodbye" {
		delete(nodes, node)
	}
	for name, until := range nodes {
		if until <= s.now() && s.flaw != "forgets no node" && s.flaw != "hears no goodbye" {
			delete(nodes, name)
		}
	}
	return int64(len(nodes)), nil
}
