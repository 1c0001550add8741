// Package tpch generates the rows of the tables CUSTOMER and ORDERS of the TPC-H benchmark (TPC Benchmark H, revision
// 3, clauses 4.2.2 and 4.2.3). The rows are byte for byte those of dbgen, the benchmark's own generator. The package
// can generate any range of rows without the rows before it, so that several goroutines can share the work on a table.
//
// Imports of this module: nothing.
package tpch
