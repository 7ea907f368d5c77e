package adaptive

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// SystemConfig is what a System decides on, as plain data: start from
// DefaultSystemConfig, because it is taken literally and the zero SystemConfig does not
// validate. A threshold of 0 is no rule.
//
// In JSON the keys are in snake case, durations are text such as "250ms", and decoding
// goes over what was there: absent keys keep their value, an unknown key is an error.
type SystemConfig struct {
	// Mode is what happens when a signal is above its threshold.
	Mode SystemMode
	// QueueDelay is how long work may wait before it is begun. At most a minute.
	QueueDelay time.Duration
	// Load1 is the load that is too high if more calls are under way than the process
	// can work on at once as well (see BBR). Auto is 2.5 × the cores that the process may
	// have.
	Load1 float64
	// CPU is the share of the CPU time that may be in use, below 1, which it never
	// exceeds.
	CPU float64
	// AvgRT is how long calls may take on average. At most an hour.
	AvgRT time.Duration
	// EntryQPS is how many calls a second may be admitted, at least 1.
	EntryQPS float64
	// Concurrency is how many calls may be under way.
	Concurrency int
	// CPUQuota is how many cores the process may have, where the system hides it. 0
	// leaves it to the System to find that out.
	CPUQuota float64
}

// DefaultSystemConfig returns: keep the delay of goroutines at 5 ms and load1 at 2.5 for
// each core, by refusing a share of the calls.
func DefaultSystemConfig() SystemConfig {
	return SystemConfig{Mode: Proportional, QueueDelay: 5 * time.Millisecond, Load1: Auto}
}

// mostSystem is what numbers without a limit of their own may be.
const mostSystem = 1e9

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c SystemConfig) Validate() error {
	var v complaints
	v.unless(c.Mode.known(), "Mode %d is not one of %v, %v, %v", uint8(c.Mode), Hard, BBR, Proportional)
	v.unless(c.QueueDelay >= 0 && c.QueueDelay <= time.Minute, "QueueDelay %v is not in [0, %v]", c.QueueDelay, time.Minute)
	v.unless(c.Load1 == Auto || c.Load1 >= 0 && c.Load1 <= mostSystem, "Load1 %v is not in [0, 1e9], and not Auto", c.Load1) // also catches NaN
	v.unless(c.CPU >= 0 && c.CPU < 1, "CPU %v is not in [0, 1)", c.CPU)
	v.unless(c.AvgRT >= 0 && c.AvgRT <= time.Hour, "AvgRT %v is not in [0, %v]", c.AvgRT, time.Hour)
	v.unless(c.EntryQPS == 0 || c.EntryQPS >= 1 && c.EntryQPS <= mostSystem, "EntryQPS %v is not 0, and not in [1, 1e9]", c.EntryQPS)
	v.unless(c.Concurrency >= 0 && c.Concurrency <= math.MaxInt32, "Concurrency %d is not in [0, %d]", c.Concurrency, math.MaxInt32)
	v.unless(c.CPUQuota == 0 || c.CPUQuota >= 0.001 && c.CPUQuota <= 1e6, "CPUQuota %v is not 0, and not in [0.001, 1e6]", c.CPUQuota)
	return errors.Join(v...)
}

// thresholds are those of all signals, 0 where there is no rule, for a process that may
// have so many cores.
func (c *SystemConfig) thresholds(cores float64) (t [signals]float64) {
	t[QueueDelay] = c.QueueDelay.Seconds()
	if t[Load1] = c.Load1; c.Load1 == Auto {
		t[Load1] = 2.5 * cores
	}
	t[CPU] = c.CPU
	t[AvgRT] = c.AvgRT.Seconds()
	t[EntryQPS] = c.EntryQPS
	t[Concurrency] = float64(c.Concurrency)
	return t
}

// timed reports whether any rule needs to know how long calls take.
func (c *SystemConfig) timed() bool { return c.AvgRT > 0 || c.Load1 != 0 || c.Mode == BBR }

// systemConfigJSON is SystemConfig as JSON has it.
type systemConfigJSON struct {
	Mode        SystemMode        `json:"mode"`
	QueueDelay  jsontime.Duration `json:"queue_delay"`
	Load1       autoNumber        `json:"load1"`
	CPU         float64           `json:"cpu"`
	AvgRT       jsontime.Duration `json:"avg_rt"`
	EntryQPS    float64           `json:"entry_qps"`
	Concurrency int               `json:"concurrency"`
	CPUQuota    float64           `json:"cpu_quota"`
}

// MarshalJSON writes every key, durations as text.
func (c SystemConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is an
// error. It does not validate; c is as before when it returns an error.
func (c *SystemConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = SystemConfig{
		j.Mode, time.Duration(j.QueueDelay), float64(j.Load1), j.CPU, time.Duration(j.AvgRT), j.EntryQPS, j.Concurrency, j.CPUQuota,
	}
	return nil
}

func (c SystemConfig) toJSON() systemConfigJSON {
	return systemConfigJSON{
		c.Mode, jsontime.Duration(c.QueueDelay), autoNumber(c.Load1), c.CPU, jsontime.Duration(c.AvgRT), c.EntryQPS, c.Concurrency, c.CPUQuota,
	}
}

// An autoNumber is a number, or "auto".
type autoNumber float64

func (n autoNumber) MarshalJSON() ([]byte, error) {
	if n == Auto {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(float64(n))
}

func (n *autoNumber) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "null":
		return nil
	case `"auto"`:
		*n = Auto
		return nil
	}
	var v float64
	if err := json.Unmarshal(data, &v); err != nil {
		return errors.New(string(data) + ` is not a number, and not "auto"`)
	}
	*n = autoNumber(v)
	return nil
}
