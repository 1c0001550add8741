// Package cost records the cost of a request: the CPU time it uses, its waits for locks and for the client, the rows
// and bytes it reads, writes and sends, and the splits it accesses.
//
// A Recorder is filled while the request runs (recorder.go, statement.go, read.go). When the request ends, End
// distributes its cost. It adds a statement or a read to the statistics of the database, and to the timeline of its
// transaction if the transaction has a tag. It charges the splits that the request accessed. It returns a Cost to the
// caller, for metrics, server-timing and log.
//
// The measurement of CPU time and the tables of SPANNER_SYS belong to package stats.
//
// Imports of this module: database, database/prepare, database/split, server/status, sql/exec, stats, stats/cpu, stats/live, txn, usererror.
package cost
