// Package studies has the benchmarks that repeat published studies of reads and writes, and those of our own that compare
// with them: point queries, schema changes, columnar copies.
//
// Imports of this module: bench, bench/harness, bench/report.
package studies
