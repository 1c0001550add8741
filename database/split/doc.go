// Package split knows the splits of a database: ranges of keys that a service of many servers would give to one server each.
// One process serves all of them here. They decide where partitions begin, how many remote calls an execution would make,
// how many participants a transaction has, and which ranges are reported as hot.
//
// A split begins at a split point that a user has added, or in the middle of a range that has grown large. User split points
// are stored; the bounds found by size are kept in memory only. After a start the Manager goes on with those that it is told of, and finds
// the others again. A Tracker records which splits one execution reads and writes.
//
// What it leaves out: moving data. A split has no server, and it never holds up a request.
//
// Imports of this module: database/meta, kv, memory, mvcc, schema, stats, table, txn, usererror, value.
package split
