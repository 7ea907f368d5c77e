package adaptive

// Config returns a copy of what the System decides on.
func (s *System) Config() SystemConfig {
	if s == nil {
		return SystemConfig{}
	}
	return *s.config.Load()
}

// Update changes what the System decides on, from the next look at the signals on, which
// is at most a tenth of a second later. What it knows of them stays. One that does not
// validate is returned as an error and changes nothing.
func (s *System) Update(c SystemConfig) error {
	if err := c.Validate(); err != nil || s == nil {
		return err
	}
	s.config.Store(&c)
	return nil
}
