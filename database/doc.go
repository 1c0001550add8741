// Package database holds what one server serves: instances and their databases in one store. Each database has a
// catalog, transactions, schema changes and prepared statements. Package server turns protos into calls of this
// package, and rows into protos.
//
// A schema change never stops reads, and it stops writes only for the moment in which it publishes a new catalog. A
// prepared statement or projection belongs to the schema version that it was prepared for, and is dropped with it. A
// read at a timestamp uses the version that was valid at that timestamp. A version stays in the store for as long as
// anything can be read at its timestamps.
//
// Besides serving requests, a database works in the background: it collects old versions, keeps statistics, deletes
// expired rows and keeps columnar copies up to date.
//
// What it leaves out: sessions, transaction ids and tokens, which belong to the server; and more than one process on a
// store.
//
// Imports of this module: changestream, columnar, database/background, database/cache, database/copies, database/job, database/meta, database/prepare, database/schemachange, database/sequence, database/split, database/ttl, kv, memory, mvcc, schema, sql/exec, sql/plan, sql/spill, stats, stats/cpu, stats/live, table, txn, usererror, value.
package database
