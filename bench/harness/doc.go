// Package harness runs benchmarks: it opens the target, lets the paths of an experiment take turns, measures them and
// reports.
//
// It starts the server that is measured, runs the clients that repeat an operation, shows the progress on the screen,
// and reads what the server reports about itself in /metrics and SPANNER_SYS.
//
// Imports of this module: bench, bench/report.
package harness
