package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/sluicego/sluice"
)

// door is a Guard: it lets a call through, or says why not.
type door struct{ shut bool }

func (d *door) Do(ctx context.Context, call func(context.Context) error) error {
	if d.shut {
		return fmt.Errorf("door: %w", sluice.ErrRejected)
	}
	return call(ctx)
}

// Call returns what the call returns. If the guard refuses, it is not made.
func ExampleCall() {
	stock := func(context.Context) (int, error) { return 12, nil }

	spoons, err := sluice.Call(context.Background(), &door{}, stock)
	fmt.Println(spoons, err)

	spoons, err = sluice.Call(context.Background(), &door{shut: true}, stock)
	fmt.Println(spoons, err)
	// Output:
	// 12 <nil>
	// 0 door: sluice: rejected
}

// A fallback is asked whether the call was refused or has failed. It sees why, and
// may have nothing for some causes.
func ExampleCallOr() {
	errNoSuchUser := errors.New("no such user")
	greeting := func(_ context.Context, cause error) (string, error) {
		if errors.Is(cause, errNoSuchUser) {
			return "", cause // a guess would be wrong
		}
		return "Hello!", nil
	}
	for _, c := range []struct {
		guard sluice.Guard
		err   error
	}{
		{&door{}, nil},
		{&door{}, errors.New("connection refused")},
		{&door{}, errNoSuchUser},
		{&door{shut: true}, nil},
	} {
		said, err := sluice.CallOr(context.Background(), c.guard, func(context.Context) (string, error) {
			return "Hello, Ada!", c.err
		}, greeting)
		fmt.Printf("%q %v\n", said, err)
	}
	// Output:
	// "Hello, Ada!" <nil>
	// "Hello!" <nil>
	// "" no such user
	// "Hello!" <nil>
}

// Must is for what cannot go wrong unless the program is wrong.
func ExampleMust() {
	port := sluice.Must(strconv.Atoi("8080"))
	fmt.Println(port)

	defer func() { fmt.Println("panic:", recover()) }()
	sluice.Must(strconv.Atoi("http"))
	// Output:
	// 8080
	// panic: strconv.Atoi: parsing "http": invalid syntax
}
