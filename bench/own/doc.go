// Package own runs the workloads that a user describes in files: SQL, reads and mutations. The files also declare the
// parameters of these.
//
// Imports of this module: bench, bench/harness.
package own
