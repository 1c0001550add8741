// Package split computes the splits of a database: ranges of keys that a service of many servers would give to one
// server each. Here one process serves all of them. The splits decide where partitions begin, how many remote calls
// statistics show for an execution, how many participants a transaction has, and which ranges are reported as hot.
//
// A split begins at a split point that a user has added, or in the middle of a range that has grown large. User split
// points are stored. The bounds that were found by size are only in memory: after a start the Manager uses those that
// Config.SizeBounds gives it, and SplitBySize finds the rest again. A Tracker records which splits one execution reads
// and writes.
//
// Splits never move data and never delay a request.
//
// Imports of this module: database/meta, kv, memory, mvcc, schema, stats, table, txn, usererror, value.
package split
