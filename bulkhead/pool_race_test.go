package bulkhead

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever happens at the same time, each task runs once, or not at all and then its
// caller hears so; no more run at once than there are workers; and none is lost when
// the pool closes.
func TestPool_Conservation(t *testing.T) {
	const goroutines, most = 8, 4
	p, err := NewPool("mail", most, WithPoolQueue(6), WithKeepAlive(50*time.Microsecond))
	require.NoError(t, err)
	var inside, ran, ended, returned, panics, exits, unmade atomic.Int64
	task := func(how int) func(context.Context) (int64, error) {
		var begun atomic.Bool
		return func(context.Context) (int64, error) {
			if in := inside.Add(1); in > most {
				t.Errorf("%d tasks run on %d workers", in, most)
			}
			if begun.Swap(true) {
				t.Error("a task ran twice")
			}
			ran.Add(1)
			defer inside.Add(-1)
			switch how {
			case 0:
				panic("boom")
			case 1:
				runtime.Goexit()
			case 2:
				runtime.Gosched()
			}
			return ran.Load(), nil
		}
	}
	count := func(v int64, err error) {
		ended.Add(1)
		_, isPanic := err.(*PanicError)
		switch {
		case isPanic:
			panics.Add(1)
		case err == ErrGoexit:
			exits.Add(1)
		case err != nil:
			unmade.Add(1)
			assert.Zero(t, v)
		default:
			returned.Add(1)
			assert.Positive(t, v)
		}
	}
	n := rounds(100_000) / goroutines
	var wg, waiting sync.WaitGroup
	for i := range uint64(goroutines) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(i, 1))
			for range n {
				ctx, cancel := context.Context(t.Context()), context.CancelFunc(func() {})
				switch r.IntN(4) {
				case 0:
					ctx, cancel = context.WithCancel(ctx)
					go cancel()
				case 1:
					ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(30_000)))
				case 2:
					if i == 0 && r.IntN(8) == 0 {
						require.NoError(t, p.Update(PoolConfig{Workers: 1 + r.IntN(most), MaxQueue: 6, KeepAlive: time.Duration(r.IntN(2) * 50_000)}))
					}
				}
				how := r.IntN(16)
				if how > 1 && r.IntN(2) == 0 { // Do passes on what 0 and 1 do to a goroutine
					var v int64
					err := p.Do(ctx, func(ctx context.Context) (err error) { v, err = task(how)(ctx); return err })
					count(v, err)
					cancel()
					continue
				}
				f, err := Submit(ctx, p, task(how))
				if err != nil {
					count(0, err)
					cancel()
					continue
				}
				waiting.Go(func() {
					defer cancel()
					count(f.Wait(context.Background()))
				})
				if r.IntN(8) > 0 {
					<-f.Done()
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Close(t.Context()))
	waiting.Wait()
	s := p.Snapshot()
	assert.EqualValues(t, goroutines*n, ended.Load(), "everybody hears")
	assert.EqualValues(t, ran.Load(), returned.Load()+panics.Load()+exits.Load(), "ran, or was not made")
	assert.Equal(t, returned.Load(), s.Totals.Done)
	assert.Equal(t, panics.Load(), s.Totals.Panicked)
	assert.Equal(t, exits.Load(), s.Totals.Exited)
	assert.Zero(t, inside.Load())
	assert.Zero(t, s.Workers)
	assert.Zero(t, s.Queued)
}
