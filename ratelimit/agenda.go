package ratelimit

import (
	"container/heap"
	"sync/atomic"
)

// work is how callers tell Run what there is to do. It never blocks them.
type work struct {
	// wake holds one call for Run.
	wake chan struct{}
	// kicked is a stack of accounts, linked by next. Callers push; Run takes all at once.
	// An account is in it at most once, see account.kicked.
	kicked atomic.Pointer[account]
}

func (w *work) push(a *account) {
	for {
		a.next = w.kicked.Load()
		if w.kicked.CompareAndSwap(a.next, a) {
			w.ring()
			return
		}
	}
}

func (w *work) ring() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// agendaEntry is an account's place on Run's agenda. Only Run's goroutine touches it,
// except next, which belongs to whoever has set account.kicked until Run has taken it
// from the stack.
type agendaEntry struct {
	next     *account
	due      int64
	slot     int // in the heap, or unlisted
	visiting bool
	again    bool // it was kicked meanwhile
}

const unlisted = -1

// agenda is the accounts that Run looks after, those first that are due first.
type agenda []*account

func (g agenda) Len() int           { return len(g) }
func (g agenda) Less(i, j int) bool { return g[i].due < g[j].due }
func (g agenda) Swap(i, j int) {
	g[i], g[j] = g[j], g[i]
	g[i].slot, g[j].slot = i, j
}

// Push and Pop are heap's.
func (g *agenda) Push(x any) {
	a := x.(*account)
	a.slot = len(*g)
	*g = append(*g, a)
}

func (g *agenda) Pop() any {
	old := *g
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*g = old[:len(old)-1]
	a.slot = unlisted
	return a
}

// set makes a due at that time.
func (g *agenda) set(a *account, due int64) {
	a.due = due
	a.listed.Store(true)
	if a.slot == unlisted {
		heap.Push(g, a)
		return
	}
	heap.Fix(g, a.slot)
}

// take removes the account that is due first, if it is due at now.
func (g *agenda) take(now int64) *account {
	if len(*g) == 0 || (*g)[0].due > now {
		return nil
	}
	return heap.Pop(g).(*account)
}
