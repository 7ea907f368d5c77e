package ratelimit

import (
	"errors"
	"hash/maphash"
	"maps"

	"github.com/sluicego/sluice/internal/clock"
)

// newKeyed returns a Keyed of that name and configuration, which are valid, whose
// decisions say that they are of that policy.
func newKeyed(name, policy string, c KeyedConfig, counted bool, now int64) *Keyed {
	ks := &keyspace{
		name: name, policy: policy, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		table: newKeyTable(c.MaxKeys), top: newTopList(c.TopRejected),
	}
	if counted {
		ks.tally.answers = new(tally)
	}
	for tag := uint64(1); tag <= tagMask; tag++ {
		ks.tags = append(ks.tags, tag)
	}
	k := ks.newClass("")
	ks.classes.Store(&map[string]*Keyed{"": k})
	ks.mu.Lock()
	defer ks.mu.Unlock()
	ks.install(c.Clone(), now)
	return k
}

func (ks *keyspace) newClass(name string) *Keyed {
	k := &Keyed{space: ks, class: name}
	k.tier.taker = k
	return k
}

// Config returns a copy of what the Keyed decides on, for all classes.
func (k *Keyed) Config() KeyedConfig {
	if k == nil {
		return KeyedConfig{}
	}
	return k.space.config.Load().Clone()
}

// Update changes what the Keyed decides on, for all classes, and keeps the tokens that
// each key has, as far as the new burst can hold them, or its debt; a key whose bucket is
// full has a full bucket afterwards. It is as if all keys changed at that moment, though
// each is worked out only when it is asked for. A class that is left out has the limit of
// all keys from then on.
//
// An equal KeyedConfig changes nothing; one that does not validate, or changes MaxKeys or
// TopRejected, is returned as an error and changes nothing. c is copied.
func (k *Keyed) Update(c KeyedConfig) error {
	if err := c.Validate(); err != nil || k == nil {
		return err
	}
	ks := k.space
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if err := ks.allows(c); err != nil {
		return err
	}
	if !ks.config.Load().Equal(c) {
		ks.install(c.Clone(), clock.Now())
	}
	return nil
}

// allows complains of what cannot change while the Keyed lives. The caller holds ks.mu.
func (ks *keyspace) allows(c KeyedConfig) error {
	var v complaints
	old := ks.config.Load()
	v.unless(c.MaxKeys == old.MaxKeys, "MaxKeys %d is not %d, and the table keeps its size", c.MaxKeys, old.MaxKeys)
	v.unless(c.TopRejected == old.TopRejected, "TopRejected %d is not %d, which stays", c.TopRejected, old.TopRejected)
	classes := maps.Clone(*ks.classes.Load())
	for _, class := range c.Classes {
		classes[class.Name] = nil
	}
	v.unless(len(classes) <= 1+maxClasses, "Classes makes %d names with those of before, more than %d", len(classes)-1, maxClasses)
	return errors.Join(v...)
}

// install puts c in force. The caller holds ks.mu.
func (ks *keyspace) install(c KeyedConfig, now int64) {
	ks.config.Store(&c)
	classes := maps.Clone(*ks.classes.Load())
	for _, class := range c.Classes {
		if classes[class.Name] == nil {
			classes[class.Name] = ks.newClass(class.Name)
		}
	}
	for _, k := range classes {
		if old, limit := k.rule.Load(), c.limitOf(k.class); old == nil || old.limits != limit {
			ks.replace(k, limit, now)
		}
	}
	ks.classes.Store(&classes)
}

// replace gives the keys of class k another limit. The caller holds ks.mu.
func (ks *keyspace) replace(k *Keyed, limit Config, now int64) {
	var tag uint64
	if bounded(limit.Rate) {
		tag = ks.freeTag(now)
	}
	next := newKeyRule(k, limit, tag, now)
	if tag != 0 {
		ks.rules[tag].Store(next)
	}
	if old := k.rule.Load(); old != nil {
		old.heir.Store(next) // from here on nobody takes by it
	}
	k.rule.Store(next)
}

// ruleAt is the rule in force for keys of class k. A scale ends after 4.5 years, and
// another one takes its place.
func (k *Keyed) ruleAt(now int64) *keyRule {
	r := k.rule.Load().newest()
	if r.most == 0 || !r.own.ended(now) {
		return r
	}
	k.space.mu.Lock()
	defer k.space.mu.Unlock()
	if r.heir.Load() == nil {
		k.space.replace(k, r.limits, now)
	}
	return r.newest()
}

// freeTag returns a tag that no slot bears. The caller holds ks.mu.
func (ks *keyspace) freeTag(now int64) uint64 {
	if len(ks.tags) == 0 {
		ks.recycle(now)
	}
	tag := ks.tags[0]
	ks.tags = ks.tags[1:]
	return tag
}

// recycle frees the tags of rules that are no longer in force, after some hundred
// changes of the configuration: it does for all keys what otherwise is done for each
// when it is asked for. The caller holds ks.mu, so heirs stay; and whoever locks a page
// after this has seen them, so the old tags do not come back.
func (ks *keyspace) recycle(now int64) {
	for p := range ks.table.pages {
		lock := &ks.table.pages[p]
		lock.Lock()
		sets := ks.table.of(p)
		for i := range len(sets) * keyWays {
			if ks.renew(sets[i/keyWays].slot(i%keyWays), now) {
				ks.tally.empty()
			}
		}
		lock.Unlock()
	}
	for _, k := range *ks.classes.Load() {
		k.spareLock.Lock()
		ks.renew(k.spare.slot(), now)
		k.spareLock.Unlock()
	}
	for tag := uint64(1); tag <= tagMask; tag++ {
		if ks.rules[tag].Load().heir.Load() != nil {
			ks.tags = append(ks.tags, tag)
		}
	}
}

// renew makes s tell its position by the rule in force of its class, or empties it if
// that needs no slots. The caller holds the lock that s.key is written under.
func (ks *keyspace) renew(s keySlot, now int64) (emptied bool) {
	key := s.key.Load()
	r := ks.ruleOf(key)
	if key == 0 || r.heir.Load() == nil {
		return false
	}
	if newest := r.newest(); newest.most > 0 {
		ks.convert(s, key, newest, now)
		return false
	}
	s.used.Store(frozen)
	s.key.Store(0)
	return true
}
