// Package own runs workloads from a user's files: SQL, reads and mutations, whose parameters the files declare.
//
// Imports of this module: bench, bench/harness.
package own
