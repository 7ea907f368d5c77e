package adaptive

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

const (
	tickSystem = 100 * time.Millisecond
	cpuEvery   = 250 * time.Millisecond
)

// Run looks at the signals ten times a second, for which it opens some files, until ctx
// ends; it returns the cause of that. Before and after, no signal is known and every
// call is admitted. Only one Run may run at a time.
func (s *System) Run(ctx context.Context) error {
	if s == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if !s.running.CompareAndSwap(false, true) {
		return fmt.Errorf("adaptive: system %q has a Run already", s.name)
	}
	defer s.running.Store(false)
	defer s.rest()
	eyes := newSenses(s.config.Load().CPUQuota)
	defer func() { eyes.close() }()
	ticker := time.NewTicker(tickSystem)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
			if quota := s.config.Load().CPUQuota; quota != eyes.cpu.fixed {
				eyes.close()
				eyes = newSenses(quota)
			}
			now := clock.Now()
			s.tick(now, eyes.look(now))
		}
	}
}

// senses are what Run looks with. They belong to it and must be closed.
type senses struct {
	cpu     *cpuReader
	queue   *runQueue
	share   smoothed // of the CPU
	goLoad  smoothed // goroutines that run or could
	nextCPU int64
	load1   reading // of the host, as of the last look at the CPU
}

func newSenses(quota float64) *senses {
	return &senses{
		cpu: newCPUReader(quota), queue: newRunQueue(),
		share: smoothed{tau: time.Second}, goLoad: smoothed{tau: time.Minute},
	}
}

func (e *senses) close() { e.cpu.close() }

// look returns what is seen at now.
func (e *senses) look(now int64) sight {
	delay, load := e.queue.read(now)
	if load.known {
		e.goLoad.add(now, load.value)
	}
	if now >= e.nextCPU {
		e.nextCPU = clock.After(now, cpuEvery)
		if share, ok := e.cpu.read(now); ok {
			e.share.add(now, share)
		}
		e.load1 = hostLoad(e.cpu.root)
	}
	seen := sight{
		delay: delay, load1: e.load1, cpu: e.share.read(), cores: e.cpu.cores,
		cpuFinding: cpuFinding{e.cpu.describe(), e.cpu.problem},
	}
	if e.cpu.limited() || !e.load1.known {
		seen.load1 = e.goLoad.read()
	}
	return seen
}
