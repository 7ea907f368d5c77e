package slidingwindow

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// duel lets two goroutines, 0 and 1, act at the same time, round after round from
// 1, each after a random delay of its own of up to 400 spins. When both have
// acted, judge looks at the outcome while nobody acts.
func duel(rounds int, act func(me int, round int64), judge func(round int64)) {
	var arrived, acted atomic.Int64 // over all rounds, 2 a round; raised by meet
	run := func(me int) {
		skew := rand.New(rand.NewPCG(uint64(me), 0))
		for r := int64(1); r <= int64(rounds); r++ {
			meet(&arrived, 2*r)
			spin(skew.IntN(401))
			act(me, r)
			meet(&acted, 2*r)
			if me == 0 {
				judge(r) // the other one waits for this one to arrive meanwhile
			}
		}
	}
	var running sync.WaitGroup
	running.Go(func() { run(0) })
	running.Go(func() { run(1) })
	running.Wait()
}

// meet raises n and waits for the other goroutine to bring it to all. It spins,
// so that both go on within some 100 ns of each other.
func meet(n *atomic.Int64, all int64) {
	n.Add(1)
	var p patience
	for n.Load() < all {
		p.turn()
	}
}

// patience is how a waiting loop spends its turns: on nothing, but now and then
// it offers its core to the other goroutine, which may have none.
type patience struct {
	turns int
	until int64
}

func (p *patience) turn() {
	p.turns++
	if p.turns%1000 != 0 {
		return
	}
	now := Now()
	if p.until == 0 {
		p.until = now + int64(300*time.Microsecond)
	}
	if now < p.until {
		runtime.Gosched()
		return
	}
	time.Sleep(time.Microsecond) // even a yielding thread keeps its core
}

// spin wastes a nanosecond or less n times.
func spin(n int) {
	x := n
	for range n {
		x ^= x << 1
	}
	runtime.KeepAlive(x)
}
