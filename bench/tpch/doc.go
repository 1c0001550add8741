// Package tpch makes the rows of the tables CUSTOMER and ORDERS of the TPC-H benchmark, byte for byte those of its
// generator dbgen: TPC Benchmark H, revision 3, clauses 4.2.2 and 4.2.3. Any range of rows can be made by itself, so
// that several goroutines can make a table.
//
// Imports of this module: nothing.
package tpch
