// Package jsontime is how a configuration is read from JSON: durations are text
// ("250ms"), a key that nobody knows is an error, keys that are absent keep what
// was there, and every complaint names the key it is about.
//
// A Config with durations and lists decodes through a struct of its own, which
// it fills with what it has, except for the lists. Those start nil, so that a
// list is replaced whole and never written into an array that somebody shares:
//
//	func (c *Config) UnmarshalJSON(data []byte) error {
//		in := configJSON{Window: jsontime.Duration(c.Window)} // but not c.Stages
//		if err := jsontime.Strict(data, &in); err != nil {
//			return err // and c is as before
//		}
//		c.Window = time.Duration(in.Window)
//		if in.Stages != nil {
//			c.Stages = in.Stages
//		}
//		return nil
//	}
package jsontime
