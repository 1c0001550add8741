// Package own runs the workloads that a user describes in files: SQL, reads and mutations. The files also declare the
// parameters that these operations use.
//
// Imports of this module: bench, bench/harness.
package own
