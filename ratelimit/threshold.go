package ratelimit

import (
	"fmt"
	"strings"
)

// Threshold is the rate of a Shared limiter, and whose it is. The zero Threshold is
// invalid: make one with Global, ClusterAverage or PerNode.
//
// As text and in JSON it is "global 1000/s", "cluster_average 100/s" or
// "per_node 100/s".
type Threshold struct {
	Kind ThresholdKind
	Rate Rate
}

// Global is r for all nodes together, whichever of them the calls come to.
func Global(r Rate) Threshold { return Threshold{GlobalThreshold, r} }

// ClusterAverage is r for each live node on average: all nodes together get r times
// their number, whichever of them the calls come to. It is no bound for a single
// node; PerNode is.
func ClusterAverage(r Rate) Threshold { return Threshold{ClusterAverageThreshold, r} }

// PerNode is r for each node by itself. Nothing is shared, and no store is asked.
func PerNode(r Rate) Threshold { return Threshold{PerNodeThreshold, r} }

// Validate returns what is wrong with t.
func (t Threshold) Validate() error {
	if t.Kind < GlobalThreshold || t.Kind > PerNodeThreshold {
		return fmt.Errorf("ratelimit: Threshold %q is not one of Global, ClusterAverage, PerNode", t)
	}
	return t.Rate.Validate()
}

// String returns t as UnmarshalText reads it.
func (t Threshold) String() string { return t.Kind.String() + " " + t.Rate.String() }

// MarshalText writes what String returns, also for a Threshold that does not
// validate.
func (t Threshold) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what String returns. t is as before when it returns an error.
func (t *Threshold) UnmarshalText(text []byte) error {
	kind, rate, _ := strings.Cut(string(text), " ")
	for k := GlobalThreshold; k <= PerNodeThreshold; k++ {
		if k.String() == kind {
			r, err := ParseRate(rate)
			if err == nil {
				*t = Threshold{k, r}
			}
			return err
		}
	}
	return fmt.Errorf(`ratelimit: %.64q is not a threshold such as "global 1000/s", "cluster_average 100/s" or "per_node 100/s"`, text)
}

// A ThresholdKind says whose a threshold's rate is.
type ThresholdKind uint8

const (
	// GlobalThreshold is that of Global.
	GlobalThreshold ThresholdKind = iota + 1
	// ClusterAverageThreshold is that of ClusterAverage.
	ClusterAverageThreshold
	// PerNodeThreshold is that of PerNode.
	PerNodeThreshold
)

// String returns "global", "cluster_average" or "per_node".
func (k ThresholdKind) String() string {
	switch k {
	case GlobalThreshold:
		return "global"
	case ClusterAverageThreshold:
		return "cluster_average"
	case PerNodeThreshold:
		return "per_node"
	}
	return fmt.Sprintf("ThresholdKind(%d)", uint8(k))
}

// MarshalText returns the text of String.
func (k ThresholdKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
