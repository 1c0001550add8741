// Package soak has two tests under load: Run ends and restarts a server again and again, and Memory sends it the
// heaviest requests. Unlike benchmarks, these tests compare nothing: a run succeeds or fails.
//
// Imports of this module: bench, bench/harness, bench/report.
package soak
