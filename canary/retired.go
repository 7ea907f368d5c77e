package canary

import "slices"

// remember keeps the versions that a table has no longer, so that what is under way in
// them is seen, and what they have served; the newest of them. The caller holds mu.
func (p *Picker) remember(t *table) {
	serves := func(name string) bool { return t.index(name) >= 0 }
	p.retired = slices.DeleteFunc(p.retired, serves)
	var gone []string
	for name := range p.known {
		if !serves(name) && !slices.Contains(p.retired, name) {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	p.retired = append(p.retired, gone...)
	for len(p.retired) > maxRemembered {
		for i, n := range p.known[p.retired[0]].picked() {
			p.forgotten[i] += n
		}
		delete(p.known, p.retired[0])
		p.retired = p.retired[1:]
	}
}

// Retired returns the versions that the plan no longer has and that are remembered,
// the oldest first: at most 64. One whose InFlight is 0 can be switched off.
func (p *Picker) Retired() []*Version {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Version, 0, len(p.retired))
	for _, name := range p.retired {
		all = append(all, p.known[name])
	}
	return all
}
