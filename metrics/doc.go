// Package metrics is the narrow waist between what guards know and what shows
// it: every guard of this module is a Source, every exporter reads a Set of
// them, and neither knows the other.
//
//	breaker  ─┐  Source         Set        ┌─ Set.Collect      Prometheus, OpenTelemetry
//	limiter  ─┤                            ├─ Set.WriteText    people
//	bulkhead ─┼─ Collect  ──▶  Add(name)  ─┼─ Set.MarshalJSON  a dashboard
//	yours    ─┘  View           Remove     └─ Set.String       expvar
//
// Everything is pulled. A guard counts what it needs for its own decisions, and
// a Source reads that when it is asked; being listed in a Set costs a call
// nothing. Nothing is global and nothing runs in the background: a program makes
// its Set, adds its guards and hands the Set to whatever shows it.
//
// There are two ways to look. Collect gives numbers: samples of families, each
// described by a Desc, for storing and drawing. View gives the whole picture of
// one guard at one moment, as a plain value for JSON.
//
// To make something of your own a Source, write down its Descs (their comment
// has the rules for names), yield one Sample for each value, and return your
// snapshot type from View. Where a counter is the sum of parts that are read one
// after another, a Total keeps it from going down.
package metrics
