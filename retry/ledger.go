package retry

// slots is how many parts a budget's Window has. Between what is promised and what is
// allowed lie at most two of them: 4 % less than there could be.
const slots = 50

// ledger is what a budget knows of the last seconds: a ring of slots, each for one
// width of time. There is one slot more than the Window has, so that the withdrawals
// in all of them are at least those of a whole Window, while the deposits in all but
// the oldest are at most those of one.
type ledger struct {
	width  int64
	newest int64 // number of the newest slot; slot n begins at n · width
	sum    slot  // of the whole ring
	ring   [slots + 1]slot
}

type slot struct{ deposited, withdrawn uint64 }

// roll makes the slot of now the newest. Time does not run backwards in it.
func (l *ledger) roll(now int64) {
	number := max(now, 0) / l.width
	for n := max(l.newest+1, number-slots); n <= number; n++ {
		old := l.place(n)
		l.sum.deposited -= old.deposited
		l.sum.withdrawn -= old.withdrawn
		*old = slot{}
	}
	l.newest = max(l.newest, number)
}

// deposit enters n deposits of that time, unless it is too old.
func (l *ledger) deposit(time int64, n uint64) {
	if s := l.at(time); s != nil {
		s.deposited += n
		l.sum.deposited += n
	}
}

// withdraw enters n withdrawals of that time, unless it is too old.
func (l *ledger) withdraw(time int64, n uint64) {
	if s := l.at(time); s != nil {
		s.withdrawn += n
		l.sum.withdrawn += n
	}
}

// giveBack strikes out a withdrawal of that time, if there is one.
func (l *ledger) giveBack(time int64) {
	if s := l.at(time); s != nil && s.withdrawn > 0 {
		s.withdrawn--
		l.sum.withdrawn--
	}
}

// sums adds up: withdrawals of at least a Window, deposits of at most one.
func (l *ledger) sums() (deposited, withdrawn uint64) {
	return l.sum.deposited - l.place(l.newest-slots).deposited, l.sum.withdrawn
}

// reshaped returns a ledger of another width with the same entries: deposits as if
// made at the beginning of their slot and withdrawals at its end, so that nothing is
// allowed that was not. The newest slot is the one of now.
func (l *ledger) reshaped(width, now int64) ledger {
	next := ledger{width: width}
	next.roll(now)
	for n := max(l.newest-slots, 0); n <= l.newest; n++ {
		from := l.place(n)
		if n > l.newest-slots {
			next.deposit(n*l.width, from.deposited)
		}
		next.withdraw((n+1)*l.width-1, from.withdrawn)
	}
	return next
}

// at is the slot of a time, nil if it is too old.
func (l *ledger) at(time int64) *slot {
	number := max(time, 0) / l.width
	if number < l.newest-slots {
		return nil
	}
	return l.place(min(number, l.newest))
}

// place is where the slot of a number is.
func (l *ledger) place(number int64) *slot {
	return &l.ring[(number+slots+1)%(slots+1)] // numbers begin at −slots
}
