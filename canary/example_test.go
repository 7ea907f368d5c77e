package canary_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/canary"
)

// A user keeps the version, and a larger share takes in more users without sending
// anybody back.
func Example() {
	p, err := canary.New("checkout", "v1", canary.WithVersion("v2", 0, canary.Percent(10)))
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func() {
		for _, user := range []string{"alice", "bob", "carol"} {
			d := p.Decide(canary.Input{ID: user})
			fmt.Printf("%s is at %d and gets %v\n", user, d.Point, d.Version)
		}
	}
	show()
	fmt.Println(p.SetWeights(map[string]canary.Weight{"v2": canary.Percent(50)}))
	show()
	fmt.Println(p.Rollback("v2", "error rate"))
	show()
	// Output:
	// alice is at 285967 and gets v1
	// bob is at 924653 and gets v1
	// carol is at 86658 and gets v2
	// <nil>
	// alice is at 285967 and gets v2
	// bob is at 924653 and gets v1
	// carol is at 86658 and gets v2
	// <nil>
	// alice is at 285967 and gets v1
	// bob is at 924653 and gets v1
	// carol is at 86658 and gets v1
}

// Preview says who would move, exactly, before anybody does.
func ExamplePicker_Preview() {
	p := sluice.Must(canary.New("checkout", "v1",
		canary.WithVersion("v2", 0, canary.Percent(10)),
		canary.WithVersion("v3", 1, canary.Percent(2))))
	d, err := p.Preview(map[string]canary.Weight{"v2": canary.Percent(25), "v3": 0})
	fmt.Println(d, err)
	fmt.Println(d.Moved(), "of all users move")
	// Output:
	// v1→v2 15%, v3→v1 2% <nil>
	// 17% of all users move
}

// After a rollback nobody gets the version, whatever is asked for, until it is
// readmitted.
func ExamplePicker_Rollback() {
	p := sluice.Must(canary.New("checkout", "v1", canary.WithVersion("v2", 0, canary.Percent(50))))
	_ = p.Rollback("v2", "p99 above 2 s")
	fmt.Println(p.Decide(canary.Input{ID: "tester", Override: "v2", Authorized: true}).Version)
	err := p.SetWeights(map[string]canary.Weight{"v2": canary.Percent(5)})
	fmt.Println(err, errors.Is(err, canary.ErrRolledBack))
	_ = p.Readmit("v2")
	fmt.Println(p.SetWeights(map[string]canary.Weight{"v2": canary.Percent(5)}))
	// Output:
	// v1
	// canary "checkout": "v2" gets a weight of 5%: canary: rolled back (p99 above 2 s) true
	// <nil>
}

// At the end of a rollout the version becomes the stable one, and nobody moves.
func ExamplePicker_Promote() {
	p := sluice.Must(canary.New("checkout", "v1",
		canary.WithVersion("v2", 0, canary.All),
		canary.WithOnChange(func(c canary.Change) { fmt.Println(c.Action, c.Version+":", c.Diff) })))
	_ = p.Promote("v2")
	old := p.Retired()[0]
	fmt.Println("stable is", p.Stable(), "and", old, "has", old.InFlight(), "requests under way")
	// Output:
	// promote v2: nobody moves
	// stable is v2 and v1 has 0 requests under way
}

// A tester gets a token for a version that nobody else gets yet.
func ExampleTokens() {
	keys := sluice.Must(canary.NewTokens([]byte(strings.Repeat("k", 32)), nil))
	p := sluice.Must(canary.New("checkout", "v1", canary.WithVersion("v2", 0, 0), canary.WithTokens(keys)))
	token, err := keys.Sign(canary.Token{Rollout: "checkout", Version: "v2", Subject: "tester", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, in := range []canary.Input{{ID: "tester", Token: token}, {ID: "stranger", Token: token}, {ID: "tester"}} {
		d := p.Decide(in)
		fmt.Println(in.ID, d.Version, d.Reason)
	}
	// Output:
	// tester v2 override
	// stranger v1 split
	// tester v1 split
}

// An Identifier is for whatever carries requests; a visitor without an id gets one, and
// is split by it from the first request on.
func ExampleIdentifier() {
	type message struct{ user, device string }
	who := sluice.Must(canary.NewIdentifier([]canary.Lookup[message]{
		{Source: canary.FromUser, Find: func(m message) string { return m.user }},
		{Source: canary.FromDevice, Find: func(m message) string { return canary.IssuedID(m.device) }},
	}, canary.WithContinuity(canary.PreferDevice), canary.WithIssue()))
	p := sluice.Must(canary.New("checkout", "v1", canary.WithVersion("v2", 0, canary.Percent(50))))

	first := who.Identify(message{user: "anonymous"})
	second := who.Identify(message{device: first.ID})
	after := who.Identify(message{user: "alice", device: first.ID})
	fmt.Println(first.Source, second.Source, after.Source)
	fmt.Println(p.Pick(first.ID) == p.Pick(second.ID), p.Pick(second.ID) == p.Pick(after.ID))
	// Output:
	// issued device device
	// true true
}

// A Group has one Picker for each route; a route without a rule passes.
func ExampleGroup() {
	g := sluice.Must(canary.NewGroup("shop",
		canary.WithRoute("/checkout", "v1", canary.WithVersion("v2", 0, canary.All)),
		canary.WithRoute("/search", "s1")))
	for _, route := range []string{"/checkout", "/search", "/about"} {
		fmt.Printf("%s %q\n", route, g.Get(route).Decide(canary.Input{ID: "alice"}).Version.Name())
	}
	// Output:
	// /checkout "v2"
	// /search "s1"
	// /about ""
}

// Thirds that add up to everybody.
func ExampleShares() {
	shares, err := canary.Shares(map[string]int{"v1": 1, "v2": 1, "v3": 1})
	fmt.Println(shares, err)
	// Output:
	// map[v1:33.3334% v2:33.3333% v3:33.3333%] <nil>
}

// Your own code is tested by sending everybody to the version that is to be tested.
func ExampleAll() {
	serve := func(p *canary.Picker, user string) string { return "served by " + p.Pick(user).Name() }

	p := sluice.Must(canary.New("test", "v1", canary.WithVersion("v2", 0, canary.All)))
	fmt.Println(serve(p, "anybody"))
	fmt.Println(serve(nil, "anybody") == "served by ")
	// Output:
	// served by v2
	// true
}
