// Package bench re-runs published comparisons of access paths with the official
// Go client, against a server in a process of its own or any endpoint that speaks
// Cloud Spanner's API, and runs workloads from a user's files the same way.
//
// Its packages compare several ways to the same result. A benchmark is a list of experiments. An experiment is a list
// of paths, which are ways to the same result. The paths take turns in rounds, in the order A B B A, so that changes
// of the machine's speed affect all paths alike:
//
//	harness.Run        connects to the server that is measured, prepares, measures, reports
//	  Benchmark        a list of experiments, from one of the packages studies, own, retrieval, watchers
//	  LoadGenerator    clients that repeat one operation, in a closed or an open loop
//	  Screen           progress, while the run goes on
//	  report.Report    the results: as text, as a page, as JSON
//	watchers.Run       measures package watch
//	soak.Run, Memory   tests under load, which compare nothing
//
// This package holds what all benchmarks share: the settings, the server's endpoint and the files that a run writes.
//
// It promises that a run that fails or is interrupted still reports its measurements, marked as partial. It promises
// that the report gives with every ratio the spread of this ratio over the turns, so that no reader takes noise for a
// difference.
//
// A run measures the server from outside. It reads the server's CPU time from the operating system if the process is
// on this machine, and otherwise from SPANNER_SYS. If neither is possible, the report says that the CPU time is
// unknown. The numbers of calls by API method come from /metrics.
//
// Imports of this module: nothing.
package bench
