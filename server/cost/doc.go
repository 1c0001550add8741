// Package cost records what one request costs: the CPU time it uses, the locks and the client it waits for, the rows and bytes it
// reads, writes and sends, and the splits it goes to.
//
// A Recorder is filled while the request runs (recorder.go, statement.go, read.go). When it ends, its cost goes to the statistics of
// the database if it ran a statement or a read, to the timeline of its transaction if that has a tag, to the splits that it
// went to, and, as a Cost, to the caller of End, for metrics, server-timing and log.
//
// It leaves out how CPU time is measured and how records become SPANNER_SYS, which is stats.
//
// Imports of this module: database, database/split, server/status, sql/exec, stats, stats/cpu, stats/live, txn.
package cost
