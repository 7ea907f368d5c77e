package sluice_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicego/sluice"
)

// gate is a guard: it lets a call through, or says why not.
type gate struct{ shut bool }

func (g *gate) Do(ctx context.Context, call func(context.Context) error) error {
	if g.shut {
		return fmt.Errorf("warehouse: %w", sluice.ErrRejected)
	}
	return call(ctx)
}

func Example_readme() {
	warehouse := &gate{}
	stock := func(context.Context) (int, error) { return 12, nil }
	guess := func(_ context.Context, cause error) (int, error) {
		if errors.Is(cause, sluice.ErrRejected) {
			return 1, nil // the call was not made: show something careful
		}
		return 0, cause
	}
	for _, shut := range []bool{false, true} {
		warehouse.shut = shut
		spoons, err := sluice.CallOr(context.Background(), warehouse, stock, guess)
		fmt.Println(spoons, err)
	}
	// Output:
	// 12 <nil>
	// 1 <nil>
}
