package bulkhead

// Config returns what the pool decides on.
func (p *Pool) Config() PoolConfig {
	if p == nil {
		return PoolConfig{}
	}
	return *p.config.Load()
}

// Update changes what the pool decides on, and blocks on nobody. More workers begin
// with what is queued at once; of fewer, those that are too many end when they have
// finished what they do. What is queued stays. An equal PoolConfig changes nothing;
// one that does not validate is returned as an error and changes nothing.
func (p *Pool) Update(c PoolConfig) error {
	if err := c.Validate(); err != nil || p == nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.config.Load()
	if c == *old {
		return nil
	}
	p.config.Store(&c)
	p.queue.SetPolicy(c.policy())
	p.staff()
	if c.KeepAlive == 0 {
		p.retire(len(p.idle))
	} else {
		p.retire(min(len(p.idle), max(0, p.workers-c.Workers)))
	}
	if c.KeepAlive != old.KeepAlive {
		p.sweepAnew(c.KeepAlive)
	}
	return nil
}
