package metrics_test

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/sluicego/sluice/metrics"
)

// A Desc is made once and shared by all objects of the type.
var (
	doorPassed = &metrics.Desc{
		Name: "door_passages", Help: "People who passed, by direction.", Unit: "{person}",
		Kind: metrics.Counter, Labels: []string{"door", "direction"},
	}
	doorOpen = &metrics.Desc{
		Name: "door_open", Help: "1 while the door is open.",
		Kind: metrics.Gauge, Labels: []string{"door"},
	}
)

// A Door counts for itself, and is a Source for whoever wants to know.
type Door struct {
	Name    string
	in, out atomic.Uint64
	open    atomic.Bool
}

func (d *Door) Collect(yield func(metrics.Sample) bool) {
	_ = yield(metrics.Sample{Desc: doorPassed, Labels: []string{d.Name, "in"}, Value: float64(d.in.Load())}) &&
		yield(metrics.Sample{Desc: doorPassed, Labels: []string{d.Name, "out"}, Value: float64(d.out.Load())}) &&
		yield(metrics.Sample{Desc: doorOpen, Labels: []string{d.Name}, Value: d.isOpen()})
}

func (d *Door) isOpen() float64 {
	if d.open.Load() {
		return 1
	}
	return 0
}

// DoorView is what a Door looks like at one moment.
type DoorView struct {
	Inside uint64 `json:"inside"`
	Open   bool   `json:"open"`
}

func (d *Door) View() any {
	return DoorView{Inside: d.in.Load() - d.out.Load(), Open: d.open.Load()}
}

func doors() *metrics.Set {
	front, back := &Door{Name: "front"}, &Door{Name: "back"}
	front.open.Store(true)
	front.in.Add(1250)
	front.out.Add(1247)

	var set metrics.Set
	for _, d := range []*Door{front, back} {
		if err := set.Add(d.Name, d); err != nil {
			fmt.Println(err)
		}
	}
	return &set
}

func ExampleSet_WriteText() {
	if err := doors().WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// door_passages{door="back",direction="in"}       0 {person}
	// door_passages{door="back",direction="out"}      0 {person}
	// door_open{door="back"}                          0
	// door_passages{door="front",direction="in"}   1250 {person}
	// door_passages{door="front",direction="out"}  1247 {person}
	// door_open{door="front"}                         1
	// source_faults                                   0 {fault}
}

// An exporter ranges over the samples and gives them names of its own.
func ExampleSet_Collect() {
	for s := range doors().Collect {
		name := "app_" + s.Desc.Name
		if s.Desc.Kind == metrics.Counter {
			name += "_total"
		}
		fmt.Println(name, s.Labels, s.Value)
	}
	// Output:
	// app_door_passages_total [back in] 0
	// app_door_passages_total [back out] 0
	// app_door_open [back] 0
	// app_door_passages_total [front in] 1250
	// app_door_passages_total [front out] 1247
	// app_door_open [front] 1
	// app_source_faults_total [] 0
}

// String is all that expvar.Publish asks for.
func ExampleSet_String() {
	fmt.Println(doors())
	// Output:
	// {"back":{"inside":0,"open":false},"front":{"inside":3,"open":true}}
}

func ExampleTotal() {
	var calls metrics.Total
	fmt.Println(calls.Report(100))
	fmt.Println(calls.Report(98)) // a bucket retired while it was summed up
	fmt.Println(calls.Report(103))
	// Output:
	// 100
	// 100
	// 103
}
