// Package changestream keeps the records of a database's change streams and reads them.
//
// Cloud Spanner's manual describes change streams for users:
// https://cloud.google.com/spanner/docs/change-streams/details. A Log has all streams of one database. A stream is
// divided into partitions. A partition covers a range of the database's logical keys, and lives from one timestamp to
// another. A change of a row goes to the partition that covers the row's key and lives at the commit's timestamp.
// Partitions follow the splits of the database. When the splits change, Reshape ends partitions and begins their
// children at one timestamp.
//
// A record is stored in the batch of its commit, as the bytes that are sent to clients: the google.protobuf.Value of
// the one column ChangeRecord. So a reader only copies bytes, and can read old records even if the schema of their
// table has changed since. The keys are in space 0, with numbers in big-endian order:
//
//	space 0 (4 bytes) | changestream/record/    | space (4) | stream (8) | partition (8) | commit timestamp (8) | sequence (4) | 00
//	space 0 (4 bytes) | changestream/partition/ | space (4) | stream (8) | partition (8) | 00
//	space 0 (4 bytes) | changestream/stream/    | space (4) | stream (8) | 00
//
// The value of a key of the second kind is a partition in JSON (partitionRecord), and that of the third kind is a
// stream in JSON (streamRecord).
//
// The package promises that a reader of a partition gets each record at or after the start of its query once, in the
// order of commit timestamps and then of sequence numbers. A heartbeat, the records of children, or the end of the
// query tells the reader a timestamp only after the reader got all records at or before it. Other packages decide
// which changes a stream watches (package schema), when a commit becomes visible (package txn), and how a query reads
// a stream (packages sql/plan and server).
//
// Imports of this module: kv, memory, mvcc, schema, stats/cpu, table, usererror, value.
package changestream
