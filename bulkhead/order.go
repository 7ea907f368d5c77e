package bulkhead

import "fmt"

// Order says which of the calls that wait goes first. The zero Order is none.
type Order uint8

const (
	// FIFO serves calls in the order in which they came.
	FIFO Order = iota + 1
	// AdaptiveLIFO serves the newest call first while the queue is in overload, else
	// the oldest. In overload the oldest have waited so long that their callers are
	// likely to be gone; they leave when their wait is over, or when a full queue has
	// to make room for a new call.
	AdaptiveLIFO
)

var orderNames = [...]string{FIFO: "fifo", AdaptiveLIFO: "adaptive_lifo"}

// String returns "fifo" or "adaptive_lifo".
func (o Order) String() string {
	if !o.known() {
		return fmt.Sprintf("Order(%d)", uint8(o))
	}
	return orderNames[o]
}

// MarshalText returns the text of String, for JSON and logs.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText writes of an Order that is one.
func (o *Order) UnmarshalText(text []byte) error {
	for known := FIFO; known <= AdaptiveLIFO; known++ {
		if string(text) == orderNames[known] {
			*o = known
			return nil
		}
	}
	return fmt.Errorf("bulkhead: order %q is not one of fifo, adaptive_lifo", text)
}

func (o Order) known() bool { return o == FIFO || o == AdaptiveLIFO }
