package adaptive

import "sync/atomic"

// A verdict is what a System does with calls until the next tick, and what it saw. The
// zero verdict lets all pass. It never changes but for entries.
type verdict struct {
	watchful bool // whether anything of this is to be looked at
	timed    bool // whether anybody wants to know how long calls take

	all   *OverloadError  // refuses every call, if not nil
	share *OverloadError  // refuses a share of the calls
	shed  [classes]uint64 // the share of each class, see chance; the last is the largest
	most  uint64          // the largest of these
	crowd *OverloadError  // refuses calls beyond bound under way
	bound int64
	rush  *OverloadError // refuses calls after the first budget
	// budget is how many calls may enter, entries how many have tried.
	budget  int64
	entries atomic.Int64

	at          int64
	findings    [signals]finding
	cause       Signal  // why calls are refused; 0 if none are
	probability float64 // of all calls
	capacity    reading
	cpu         cpuFinding
}

// A finding is what one signal said.
type finding struct {
	reading
	threshold float64 // 0: no rule
	since     int64   // since when it has been above; 0 if it is not
}

// cpuFinding tells of the cpuReader.
type cpuFinding struct {
	source  string
	problem error
}

// A judge makes verdicts out of what is seen. It belongs to tick.
type judge struct {
	traffic traffic
	control controller
	mix     mix
	calls   smoothed // under way, over a second
	cause   Signal   // the last that was the furthest above its threshold
	since   [signals]int64
}

// sight is what is seen from outside of the calls.
type sight struct {
	delay, load1, cpu reading
	cores             float64
	cpuFinding
}

// tick looks at the calls and at what was seen, and says what to do with calls until
// the next one. There is one at a time.
func (s *System) tick(now int64, seen sight) {
	j, config, c := &s.judge, s.config.Load(), s.counts()
	v := &verdict{timed: config.timed(), at: now, cpu: seen.cpuFinding, capacity: j.traffic.capacity(now)}
	v.findings = j.find(now, config, &c, seen, s.delays.take(), v.capacity)
	j.mix.add(c.sampled)
	switch config.Mode {
	case Proportional:
		j.shed(s, v, now)
	default:
		j.block(s, v, now, &c, config.Mode)
	}
	v.watchful = v.all != nil || v.share != nil || v.crowd != nil || v.rush != nil
	j.traffic.add(now, c)
	s.verdict.Store(v)
}

// rest lets all pass: nothing is known any more, but how many calls were sampled before.
func (s *System) rest() {
	s.judge = judge{mix: mix{before: s.judge.mix.before}}
	s.verdict.Store(new(verdict))
}

// find collects what the signals say, and since when they are above their thresholds.
func (j *judge) find(now int64, config *SystemConfig, c *counts, seen sight, own, capacity reading) (f [signals]finding) {
	delay := seen.delay
	if own.known && !(delay.known && delay.value > own.value) {
		delay = own
	}
	qps, rt := j.traffic.rates(now, c)
	values := [signals]reading{
		QueueDelay: delay, Load1: seen.load1, CPU: seen.cpu, AvgRT: rt, EntryQPS: qps, Concurrency: known(float64(c.inFlight())),
	}
	thresholds := config.thresholds(seen.cores)
	// A high load is no overload while no more calls are under way than can be worked on:
	// something else causes it, or they wait for a disk. By chance there are more at some
	// moments, so this is about a whole second, and half of the capacity and one more.
	j.calls.tau = lately
	j.calls.add(now, float64(c.inFlight()))
	crowded := capacity.known && j.calls.value > 1.5*capacity.value+1
	for i := QueueDelay; i < signals; i++ {
		above := values[i].known && thresholds[i] > 0 && values[i].value > thresholds[i] && (i != Load1 || crowded)
		switch {
		case !above:
			j.since[i] = 0
		case j.since[i] == 0:
			j.since[i] = now
		}
		f[i] = finding{values[i], thresholds[i], j.since[i]}
	}
	return f
}

// refusal is the error for a signal, with a share of the calls.
func (s *System) refusal(v *verdict, signal Signal, probability float64) *OverloadError {
	f := v.findings[signal]
	return &OverloadError{name: s.name, signal: signal, value: f.value, threshold: f.threshold, probability: probability}
}

// shed is the mode Proportional. How many calls come is known, so what is too many of
// them is refused at once; for the other signals there is the controller.
func (j *judge) shed(s *System, v *verdict, now int64) {
	worst := -1.0
	for i := QueueDelay; i < signals; i++ {
		f := v.findings[i]
		if i == EntryQPS || !f.known || f.threshold == 0 || i == Load1 && f.since == 0 {
			continue
		}
		if e := excess(i, f.value, f.threshold); e > worst {
			if worst = e; e > 0 {
				j.cause = i
			}
		}
	}
	p, cause := j.control.step(now, worst), j.cause
	lasting := j.control.integral
	if f := v.findings[EntryQPS]; f.since > 0 {
		if rush := min(1-f.threshold/f.value, mostShed); rush > p {
			p, lasting, cause = rush, rush, EntryQPS
		}
	}
	if p == 0 || cause == 0 {
		return
	}
	v.probability, v.cause, v.share = p, cause, s.refusal(v, cause, p)
	for class, share := range j.mix.shares(p, lasting) {
		v.shed[class] = chance(share)
		v.most = max(v.most, v.shed[class])
	}
}

// block is the modes Hard and BBR.
func (j *judge) block(s *System, v *verdict, now int64, c *counts, m SystemMode) {
	j.control, j.cause = controller{}, 0
	for i := QueueDelay; i <= AvgRT; i++ {
		switch {
		case v.findings[i].since == 0:
		case i == Load1 || m == BBR && i != AvgRT:
			if v.capacity.known && v.crowd == nil {
				v.bound, v.crowd = ceiling(v.capacity.value), s.refusal(v, i, 1)
				v.crowd.capacity = float64(v.bound)
			}
		case v.all == nil:
			v.all = s.refusal(v, i, 1)
			v.probability = 1
		}
	}
	if most := v.findings[Concurrency].threshold; most > 0 && (v.crowd == nil || int64(most) < v.bound) {
		v.bound, v.crowd = int64(most), s.refusal(v, Concurrency, 1)
		v.crowd.value = max(v.crowd.value, most)
	}
	if most := v.findings[EntryQPS].threshold; most > 0 {
		v.budget, v.rush = j.traffic.budget(now, c, most), s.refusal(v, EntryQPS, 1)
		v.rush.value = max(v.rush.value, most)
	}
	switch {
	case v.all != nil:
		v.cause = v.all.signal
	case v.crowd != nil && c.inFlight() >= v.bound:
		v.cause = v.crowd.signal
	case v.rush != nil && v.findings[EntryQPS].since > 0:
		v.cause = EntryQPS
	}
}
