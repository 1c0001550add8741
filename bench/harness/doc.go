// Package harness runs benchmarks: it opens the target, lets the paths of an experiment take turns, measures them and
// reports.
//
// It owns the server to measure and its process, the clients that repeat an operation, the progress on the screen, and
// what the server says about itself by /metrics and SPANNER_SYS.
//
// Imports of this module: bench, bench/report.
package harness
