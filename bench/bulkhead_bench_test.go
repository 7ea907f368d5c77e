package bench

import (
	"context"
	"testing"

	failsafe "github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/bulkhead"
)

// places is how many calls may be under way at once.
const places = 64

// tokens is the semaphore that every Go program can write: a channel with room for
// so many.
type tokens chan struct{}

// acquire waits for a place as long as ctx lives.
func (c tokens) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c tokens) release() { <-c }

// A place taken and given back while there are others. All look at the ctx, and
// would wait (sluice: if it was told so). Only sluice counts admissions and gives a
// permit that can be given back but once.
func BenchmarkBulkhead(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(*testing.B) loops {
		bh := sluice.Must(bulkhead.New("bench", places))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					p, err := bh.Acquire(ctx)
					if err != nil {
						b.Fatal(err)
					}
					p.Close()
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					p, err := bh.Acquire(ctx)
					if err != nil {
						b.Error(err)
						return
					}
					p.Close()
				}
			},
		}
	})
	run(b, "sluice-do", func(*testing.B) loops {
		bh := sluice.Must(bulkhead.New("bench", places))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if err := bh.Do(ctx, succeedWith); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if err := bh.Do(ctx, succeedWith); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "xsync", func(*testing.B) loops {
		s := semaphore.NewWeighted(places)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if err := s.Acquire(ctx, 1); err != nil {
						b.Fatal(err)
					}
					s.Release(1)
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if err := s.Acquire(ctx, 1); err != nil {
						b.Error(err)
						return
					}
					s.Release(1)
				}
			},
		}
	})
	run(b, "failsafe", func(*testing.B) loops {
		bh := failsafe.New[int](places)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if err := bh.AcquirePermit(ctx); err != nil {
						b.Fatal(err)
					}
					bh.ReleasePermit()
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if err := bh.AcquirePermit(ctx); err != nil {
						b.Error(err)
						return
					}
					bh.ReleasePermit()
				}
			},
		}
	})
	run(b, "channel", func(*testing.B) loops {
		c := make(tokens, places)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if err := c.acquire(ctx); err != nil {
						b.Fatal(err)
					}
					c.release()
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if err := c.acquire(ctx); err != nil {
						b.Error(err)
						return
					}
					c.release()
				}
			},
		}
	})
}

// A call that is refused at once because all places are taken. Only sluice looks at
// the ctx, counts refusals, and says why.
func BenchmarkBulkheadFull(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(b *testing.B) loops {
		bh := sluice.Must(bulkhead.New("bench", 1))
		p, err := bh.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(p.Close)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := bh.Acquire(ctx); err == nil {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := bh.Acquire(ctx); err == nil {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
	run(b, "xsync", func(*testing.B) loops {
		s := semaphore.NewWeighted(1)
		s.TryAcquire(1)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if s.TryAcquire(1) {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if s.TryAcquire(1) {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
	run(b, "failsafe", func(*testing.B) loops {
		bh := failsafe.New[int](1)
		bh.TryAcquirePermit()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if bh.TryAcquirePermit() {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if bh.TryAcquirePermit() {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
}

// A call that is bounded: run by a worker of a pool while its caller waits, or on
// its caller's own goroutine behind a semaphore. And the same in the background,
// where the semaphore needs a goroutine for each call.
func BenchmarkPoolHandoff(b *testing.B) {
	ctx := requestContext(b)
	run(b, "pool", func(b *testing.B) loops {
		p := newPool(b)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if err := p.Do(ctx, succeedWith); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if err := p.Do(ctx, succeedWith); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "semaphore", func(*testing.B) loops {
		bh := sluice.Must(bulkhead.New("bench", places))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if err := bh.Do(ctx, succeedWith); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if err := bh.Do(ctx, succeedWith); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "pool-background", func(b *testing.B) loops {
		p := newPool(b)
		call := func() error {
			f, err := bulkhead.Submit(ctx, p, answerWith)
			if err != nil {
				return err
			}
			_, err = f.Wait(ctx)
			return err
		}
		return background(call)
	})
	run(b, "semaphore-background", func(*testing.B) loops {
		bh := sluice.Must(bulkhead.New("bench", places))
		call := func() error {
			p, err := bh.Acquire(ctx)
			if err != nil {
				return err
			}
			result := make(chan int, 1)
			go func() {
				defer p.Close()
				v, _ := answerWith(ctx)
				result <- v
			}()
			select {
			case <-result:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return background(call)
	})
}

func newPool(b *testing.B) *bulkhead.Pool {
	p := sluice.Must(bulkhead.NewPool("bench", places))
	b.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return p
}

// background calls call in both loops; what it costs to call it through a variable
// is lost among what it does.
func background(call func() error) loops {
	return loops{
		serial: func(b *testing.B) {
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			for pb.Next() {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		},
	}
}
