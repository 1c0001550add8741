// Package exec runs physical plans. An operator gets batches of rows from the operators below it. A batch holds its
// values row by row in one slice (flat rows), or column by column. Each expression is compiled once per plan to a
// closure that computes it over a row, or over many rows at once (vectorexpr.go).
//
// A Program is a compiled plan, which all runs share. A run belongs to one goroutine. Its operators keep what they
// compute (hash tables, sorted rows, the results of subqueries) until the run ends. Scan, filter and projection
// allocate nothing per row.
//
// A plan that only reads rows of one table or index by key runs without operators: package table reads the rows and
// encodes them for the wire.
//
// DML collects the rows that it will change before it changes any, so that it never sees its own writes.
//
// Operators that keep rows (sorts, groups, hash joins, set operations, named subqueries) spill them to a temporary
// file when the run has used up its share of memory. The rows and their order stay the same (spill.go). Four
// things are never spilled: the array or string that one group collects, the values of an IN subquery that is not a
// join, the rows that TABLESAMPLE RESERVOIR chooses, and the rows of THEN RETURN.
//
// Imports of this module: memory, mvcc, schema, sql/fn, sql/fn/aggregate, sql/fn/conversion, sql/fn/library, sql/fn/operators, sql/fn/protobuf, sql/plan, sql/spill, sql/tree, stats/cpu, table, usererror, value, value/columnar.
package exec
