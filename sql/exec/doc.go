// Package exec runs physical plans: operators pull batches from each other, of
// flat rows or of columns, and expressions are compiled once per plan to closures
// over slots of such rows, or over many rows at once (vectorexpr.go).
//
// A Program is a compiled plan, which all runs share. A run belongs to one
// goroutine. What it computes (hash tables, sorted rows, subqueries' results)
// lives in its operators and ends with it. Scan, filter and projection allocate
// nothing per row.
//
// A plan that only reads keys runs without operators: its rows are those of
// package table, down to the bytes on the wire.
//
// DML collects what it will change before it changes anything, so that it
// never sees its own writes.
//
// Operators that keep rows (sorts, groups, hash joins, set operations, named subqueries) spill them to a temporary file when the run has more
// than its share of memory; rows and their order stay the same (spill.go). What it leaves out: spilling what must be in memory at once, such as
// the array or text that one group collects, the values of an IN subquery that is not a join, and the rows of THEN RETURN.
//
// Imports of this module: memory, mvcc, schema, sql/fn, sql/plan, sql/spill, sql/tree, stats/cpu, table, usererror, value, value/columnar.
package exec
