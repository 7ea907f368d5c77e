package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/breaker"
)

// An act plays the incident once, in a scene of its own.
type act struct {
	plan      plan
	protected bool
	network   network
	listen    string // the gateway's address
	screen    screen

	start   time.Time
	scene   *scene
	phase   atomic.Int32       // written by direct only
	turns   chan turn          // what direct has begun; it holds all of them
	changes chan breaker.Event // what the breakers have done
	record  record             // written by show only
}

// A turn is the beginning of a phase.
type turn struct {
	phase phase
	at    time.Time
}

// A record is what became of order-service.
type record struct {
	well     time.Time // when the backend was well again
	opened   time.Time // when its breaker opened first
	closed   time.Time // when it closed last
	hungThen int64     // requests that had reached the sick backend when it opened
}

// play runs the act and returns what was measured. When ctx is done before its end,
// it returns the cause.
func (a *act) play(ctx context.Context) (result, error) {
	playing, end := context.WithCancel(ctx)
	defer end()
	a.turns = make(chan turn, recovered+1)
	a.changes = make(chan breaker.Event, 16)
	protect := func(name string) (*breaker.Breaker, error) {
		if !a.protected {
			return nil, nil
		}
		return newBreaker(name, a.plan, func(e breaker.Event) {
			select {
			case a.changes <- e:
			case <-playing.Done():
			}
		})
	}
	scene, err := newScene(a.network, a.listen, a.plan.slots, protect)
	if err != nil {
		return result{}, err
	}
	defer scene.close()
	a.scene, a.start = scene, time.Now()
	a.screen.begin(a)

	var crew sync.WaitGroup
	crew.Go(func() { scene.clients(playing, a.now) })
	crew.Go(func() { a.direct(playing); end() })
	a.show(playing)
	crew.Wait()
	if ctx.Err() != nil {
		return result{}, context.Cause(ctx)
	}
	return a.result(), nil
}

// title says which act it is, and where the gateway can be tried by hand.
func (a *act) title() string {
	if a.protected {
		return "Act 2 of 2, with a breaker and an attempt timeout: " + a.scene.gateway.String()
	}
	return "Act 1 of 2, without protection: " + a.scene.gateway.String()
}

// now is the phase that runs.
func (a *act) now() phase { return phase(a.phase.Load()) }

// direct lets order-service hang and recover, and returns at the end of the act.
func (a *act) direct(ctx context.Context) {
	end := a.start
	for _, part := range []struct {
		phase phase
		lasts time.Duration
	}{
		{healthy, a.plan.healthy},
		{incident, a.plan.incident},
		{recovered, a.plan.last(a.protected)},
	} {
		a.scene.orders.backend.sick.Store(part.phase == incident)
		a.phase.Store(int32(part.phase))
		a.turns <- turn{part.phase, time.Now()}
		end = end.Add(part.lasts)
		select {
		case <-time.After(time.Until(end)):
		case <-ctx.Done():
			return
		}
	}
}

// show puts on the screen what happens, as it happens, until ctx is done.
func (a *act) show(ctx context.Context) {
	ticks := time.NewTicker(time.Second / 4)
	defer ticks.Stop()
	next := time.Second
	for {
		select {
		case t := <-a.turns:
			a.turned(t)
		case e := <-a.changes:
			a.changed(e)
		case <-ticks.C:
			if at := time.Since(a.start); at >= next {
				a.screen.rows(a.rows(at))
				next = at.Truncate(time.Second) + time.Second
			}
			a.refresh()
		case <-ctx.Done():
			for len(a.changes) > 0 {
				a.changed(<-a.changes)
			}
			a.screen.rows(a.rows(time.Since(a.start)))
			a.refresh()
			a.screen.end()
			return
		}
	}
}

// turned tells that a phase has begun.
func (a *act) turned(t turn) {
	switch t.phase {
	case incident:
		a.note(t.at, "order-service hangs: "+hangTime.String()+" a request")
	case recovered:
		a.record.well = t.at
		a.note(t.at, "order-service is well again")
	}
}

// changed tells what a breaker did, and keeps what the summary needs of it.
func (a *act) changed(e breaker.Event) {
	a.note(e.Time, e.Name+": "+explain(e))
	if e.Name != a.scene.orders.name {
		return
	}
	switch {
	case e.To == breaker.Open && a.record.opened.IsZero():
		a.record.opened, a.record.hungThen = e.Time, a.scene.orders.backend.hung.Load()
	case e.To == breaker.Closed:
		a.record.closed = e.Time
	}
}

func (a *act) note(at time.Time, text string) { a.screen.note(at.Sub(a.start), text) }

func (a *act) refresh() {
	a.screen.refresh(time.Since(a.start), a.now(), len(a.scene.door.slots))
}

// rows ends the second, with a row for each service.
func (a *act) rows(at time.Duration) []row {
	var rows []row
	for _, s := range []*service{a.scene.users, a.scene.orders} {
		r := row{at: at, service: s.name, state: "-", second: s.tally.turn(), slots: s.entrance.taken.Load()}
		if s.breaker != nil {
			r.state = s.breaker.State().String()
		}
		rows = append(rows, r)
	}
	return rows
}

// result is what was measured.
func (a *act) result() result {
	users, orders := a.scene.users, a.scene.orders
	r := result{
		sent:      users.tally.incident.sent,
		ok:        users.tally.incident.ok,
		slots:     cap(a.scene.door.slots),
		mostSlots: a.scene.door.most.Load(),
		hung:      orders.backend.hung.Load(),
	}
	if orders.breaker != nil {
		r.tripped = !a.record.opened.IsZero() && a.record.opened.Before(a.record.well)
		r.hungOpen = r.hung - a.record.hungThen
		r.closed = orders.breaker.State() == breaker.Closed && a.record.closed.After(a.record.well)
		r.toClosed = a.record.closed.Sub(a.record.well)
		r.state = orders.breaker.State().String()
	}
	return r
}
