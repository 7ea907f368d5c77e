package canary

import (
	"fmt"
	"slices"
)

// Config returns a copy of what is chosen from, with drained instances and those that are
// down.
func (u *Upstreams) Config() UpstreamsConfig {
	if u == nil {
		return UpstreamsConfig{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.config()
}

func (u *Upstreams) config() UpstreamsConfig {
	c := UpstreamsConfig{LoadFactor: u.factor}
	for _, n := range u.nodes {
		c.Upstreams = append(c.Upstreams, UpstreamConfig{n.name, int(n.weight.Load())})
	}
	return c
}

// Update changes what is chosen from, in one step. Instances that stay keep what is under
// way on them, and are as up or drained as before. One that does not validate is returned
// as an error and changes nothing.
func (u *Upstreams) Update(c UpstreamsConfig) error {
	if u == nil {
		return c.Validate()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.change(c)
}

// Add adds an instance. One that there is already is an error; SetWeight changes it.
func (u *Upstreams) Add(name string, weight int) error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.config()
	c.Upstreams = append(c.Upstreams, UpstreamConfig{name, weight})
	return u.change(c)
}

// Remove takes an instance out at once; leases on it stay valid until they are done.
func (u *Upstreams) Remove(name string) error {
	return u.edit(name, func(c *UpstreamsConfig, i int) { c.Upstreams = slices.Delete(c.Upstreams, i, i+1) })
}

// SetWeight gives an instance another weight; 0 is nothing.
func (u *Upstreams) SetWeight(name string, weight int) error {
	return u.edit(name, func(c *UpstreamsConfig, i int) { c.Upstreams[i].Weight = weight })
}

// Drain lets an instance finish what it has and gets it nothing new, until Restore. Its
// InFlight tells when Remove hurts nobody.
func (u *Upstreams) Drain(name string) error {
	return u.flag(name, func(n *Upstream) { n.drained.Store(true) })
}

// Restore ends Drain.
func (u *Upstreams) Restore(name string) error {
	return u.flag(name, func(n *Upstream) { n.drained.Store(false) })
}

// MarkDown says that an instance does not work: its ids go to their next ones until
// MarkUp, and come back then.
func (u *Upstreams) MarkDown(name string) error {
	return u.flag(name, func(n *Upstream) { n.down.Store(true) })
}

// MarkUp ends MarkDown.
func (u *Upstreams) MarkUp(name string) error {
	return u.flag(name, func(n *Upstream) { n.down.Store(false) })
}

// edit changes the configuration at the instance of that name.
func (u *Upstreams) edit(name string, f func(c *UpstreamsConfig, i int)) error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.config()
	i := slices.IndexFunc(c.Upstreams, func(n UpstreamConfig) bool { return n.Name == name })
	if i < 0 {
		return u.unknown(name)
	}
	f(&c, i)
	return u.change(c)
}

// flag changes something of an instance that is no part of the configuration.
func (u *Upstreams) flag(name string, f func(*Upstream)) error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	n := find(u.nodes, name)
	if n == nil {
		return u.unknown(name)
	}
	drained, down := n.drained.Load(), n.down.Load()
	switch f(n); {
	case n.drained.Load() != drained:
		u.publish()
	case n.down.Load() != down: // who is down stays where it is in the order of each id
		t := *u.table.Load()
		t.weigh()
		u.table.Store(&t)
	}
	return nil
}

func (u *Upstreams) unknown(name string) error {
	return fmt.Errorf("upstreams %q: %w %q", u.name, ErrUnknownUpstream, name)
}

// change puts c in force if it is valid. The caller holds mu.
func (u *Upstreams) change(c UpstreamsConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	u.install(c)
	return nil
}

// install puts a valid c in force. The caller holds mu, or nobody else knows u yet.
func (u *Upstreams) install(c UpstreamsConfig) {
	old := u.nodes
	u.nodes, u.factor = nil, c.LoadFactor
	for _, node := range c.Upstreams {
		n := find(old, node.Name)
		if n == nil {
			n = u.reborn(node.Name)
		}
		n.weight.Store(int64(node.Weight))
		u.nodes = append(u.nodes, n)
	}
	for _, n := range old {
		if find(u.nodes, n.name) == nil {
			u.gone = append(u.gone, n)
		}
	}
	if n := len(u.gone) - maxUpstreams; n > 0 {
		u.gone = slices.Delete(u.gone, 0, n)
	}
	u.publish()
}

// reborn returns a new instance, or one that was removed and is still remembered: what it
// counts goes on.
func (u *Upstreams) reborn(name string) *Upstream {
	if i := slices.IndexFunc(u.gone, func(n *Upstream) bool { return n.name == name }); i >= 0 {
		n := u.gone[i]
		u.gone = slices.Delete(u.gone, i, i+1)
		n.down.Store(false)
		n.drained.Store(false)
		return n
	}
	return &Upstream{name: name, seed: xxh64(name, u.seed)}
}

// publish puts a table of what there is in force. The caller holds mu, or nobody else
// knows u yet.
func (u *Upstreams) publish() { u.table.Store(newUpstreamTable(u.nodes, u.factor)) }

// find returns the instance of that name, nil if there is none.
func find(nodes []*Upstream, name string) *Upstream {
	if i := slices.IndexFunc(nodes, func(n *Upstream) bool { return n.name == name }); i >= 0 {
		return nodes[i]
	}
	return nil
}
