// Package studies has the benchmarks that repeat published studies of reads and writes, and related benchmarks of our
// own: point reads, schema changes and columnar copies.
//
// Imports of this module: bench, bench/harness, bench/report.
package studies
