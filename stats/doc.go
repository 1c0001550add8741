// Package stats counts what happens in a database, per interval. The packages server and database report events to it;
// users read the counts as the tables of SPANNER_SYS.
//
// Each database has a Collector, which takes one record per execution (Query, Read, Transaction, LockWait, Profile). An
// execution is one record however many splits it touched. During a minute, the Collector adds up the records of equal
// executions in a tally, which later becomes a row:
//
//	record -> shard -> board (queries, reads, ...) -> tally        collector.go, board.go, tally.go
//
// When a minute is over, the tallies of its shards are merged. The heaviest tallies are kept, and the others become one
// tally, so that totals stay exact. All of them together are one stored record. Ten such records make a record of ten
// minutes, and six of those make a record of an hour (interval.go). Rows are computed from stored records when they are
// read (tables.go), so memory holds only the current minute.
//
// Promises:
//
//   - Recording allocates nothing for a subject (such as an SQL text or a tag) that was seen before in the same minute.
//   - Memory and disk space are limited, even under hostile traffic (limits.go).
//   - A row never counts too much. If a tally was dropped and its subject comes again, the row counts only from then
//     on.
//   - A crash of the process loses at most the last ten seconds, because the counts of the current minute are stored
//     that often.
//
// Related packages: stats/live lists current activity, stats/cpu measures CPU time, stats/metrics counts requests by
// API method, and stats/stripe divides counters that all processors change.
//
// The columns mean what Spanner's documentation says, but bytes and CPU time are measured in Crowfoot's own way. CPU
// time is the measured time of the execution's own goroutine (stats/cpu): decoding, planning if the execution was the
// first to need the plan, and running. It does not include the execution's share of work for all requests (gRPC's
// connections, Go's garbage collection); /metrics, the log and server-timing show that separately.
//
// Rows spooled are rows written to temporary files (sql/spill). A row that is written several times counts several
// times.
//
// Some columns are always 0. Disk I/O cost (of HDDs) and delay of leader refresh do not exist here, because there are
// no HDDs to account for and only one server. Filesystem delay is not measured yet.
//
// Not in this package: SUPPORTED_OPTIMIZER_VERSIONS, which sql/system has, and tables about features that Crowfoot does
// not have: recommendations, vector indexes, graph operations.
//
// Imports of this module: kv, mvcc, schema, stats/cpu, stats/distribution, stats/live, stats/stripe, value.
package stats
