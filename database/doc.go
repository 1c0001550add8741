// Package database holds what one server serves: instances and their databases
// in one store, and for each database its catalog, its transactions, its schema
// changes and its prepared statements. The server above turns protos into calls
// of this package and rows into protos.
//
// A schema change never stops reads, and writes only for the moment in which a
// new catalog is published. What is prepared (statements, projections) hangs on
// the schema version that it was prepared for and goes with it. A read at a
// timestamp uses the version that was valid then, and no other; versions are
// kept, durably, for as long as something can be read at their times.
//
// Beside the requests a database works in the background: it collects old
// versions, keeps statistics, deletes rows that have expired, and keeps columnar
// copies up.
//
// What it leaves out: sessions, transaction ids and tokens, which belong to the
// server; and more than one process on a store.
//
// Imports of this module: changestream, columnar, database/job, database/meta, database/sequence, database/split, kv, memory, mvcc, schema, sql/analyze, sql/exec, sql/fn, sql/plan, sql/spill, sql/system, sql/tree, stats, stats/cpu, stats/live, table, txn, usererror, value, value/columnar.
package database
