// Package split computes the splits of a database: ranges of keys that a service of many servers would give to one
// server each. Here one process serves all of them. The splits decide where partitions begin, how many remote calls
// statistics show for an execution, how many participants a transaction has, and which ranges are reported as hot.
//
// A split begins at a split point that a user has added, or in the middle of a range that has grown large. User split
// points are stored. The bounds found by size are kept in memory only: after a start the Manager takes the bounds that
// it is given, and finds the others again. A Tracker records which splits one execution reads and writes.
//
// What it leaves out: moving data. A split has no server, and it never delays a request.
//
// Imports of this module: database/meta, kv, memory, mvcc, schema, stats, table, txn, usererror, value.
package split
