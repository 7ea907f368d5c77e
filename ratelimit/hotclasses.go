package ratelimit

import (
	"slices"
	"strconv"
)

// hotPlan is a configuration that is ready for use. It never changes.
type hotPlan struct {
	config HotParametersConfig
	// classes has one for each limit that exceptions have; exceptions are in them.
	classes    []KeyClass
	exceptions map[string]*Keyed
}

// newPlan returns the plan of c, whose classes h.all has.
func (h *HotParameters) newPlan(c HotParametersConfig, classes []KeyClass) *hotPlan {
	p := &hotPlan{c, classes, make(map[string]*Keyed, len(c.Exceptions))}
	for _, e := range c.Exceptions {
		p.exceptions[e.Value] = h.all.Class(classes[e.in(classes)].Name)
	}
	return p
}

// classesOf has a class for each limit that there is among exceptions. A limit that there
// was before keeps its class, so that its values stay where they are.
func classesOf(exceptions []HotException, before []KeyClass) (classes []KeyClass) {
	var names []string
	for _, e := range exceptions {
		if e.in(classes) >= 0 {
			continue
		}
		class := KeyClass{"", e.Rate, e.Burst, e.MaxDebt}
		if i := e.in(before); i >= 0 {
			class.Name = before[i].Name
			names = append(names, class.Name)
		}
		classes = append(classes, class)
	}
	free := 0
	for i := range classes {
		for ; classes[i].Name == ""; free++ {
			if name := strconv.Itoa(free); !slices.Contains(names, name) {
				classes[i].Name = name
			}
		}
	}
	return classes
}

// in returns which of classes has the limit of e, or −1.
func (e HotException) in(classes []KeyClass) int {
	return slices.IndexFunc(classes, func(c KeyClass) bool {
		return c.Rate == e.Rate && c.Burst == e.Burst && c.MaxDebt == e.MaxDebt
	})
}

// Config returns a copy of what the HotParameters decides on.
func (h *HotParameters) Config() HotParametersConfig {
	if h == nil {
		return HotParametersConfig{}
	}
	return h.plan.Load().config.Clone()
}

// Update changes what the HotParameters decides on, and keeps the tokens of each value as
// Keyed.Update does, also of those that become exceptions or are none any more. An equal
// HotParametersConfig changes nothing; one that does not validate, or changes MaxKeys or
// TopRejected, is returned as an error and changes nothing. c is copied.
func (h *HotParameters) Update(c HotParametersConfig) error {
	if err := c.Validate(); err != nil || h == nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c = c.Clone()
	classes := classesOf(c.Exceptions, h.plan.Load().classes)
	if err := h.all.Update(c.keyed(classes)); err != nil {
		return err
	}
	h.plan.Store(h.newPlan(c, classes))
	return nil
}
