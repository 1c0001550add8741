// Package tpch generates the rows of the tables CUSTOMER and ORDERS of the TPC-H benchmark (TPC Benchmark H, revision
// 3, clauses 4.2.2 and 4.2.3). They are byte for byte the rows of its generator dbgen. It can generate any range of
// rows alone, so that several goroutines can share a table.
//
// Imports of this module: nothing.
package tpch
