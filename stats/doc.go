// Package stats knows what happened in a database, per interval: server and
// database feed it, and it is read as the tables of SPANNER_SYS.
//
// A Collector per database takes one record per execution (Query, Read,
// Transaction, LockWait, Profile; an execution is one record however many
// splits it touched). It counts what is equal together in tallies, one for
// each row to be, in the minute that is open:
//
//	record -> shard -> board (queries, reads, ...) -> tally        collector.go, board.go, tally.go
//
// When a minute is over its tallies are merged, the heaviest are kept and the
// rest become one tally, so that totals stay exact; that is one stored record.
// Ten minutes are made of ten such records, an hour of six of those
// (interval.go). Rows are computed from stored records when they are read
// (tables.go), so that memory holds the open minute and nothing else.
//
// Promises: recording allocates nothing for what was seen before in the same
// minute; memory and disk are bounded whatever the traffic (limits.go); what a
// row says did happen (a tally that was dropped and came back counts from
// then on, it never overstates); a crash loses the seconds since the last flush.
//
// Beside it: stats/live lists what happens now, stats/cpu measures CPU time, stats/metrics
// counts requests by API method, stats/stripe parts what all processors count in.
//
// What the columns mean is what the service's pages say of them, with bytes and
// CPU time by our own measure. CPU time is what the execution's own goroutine used, measured (stats/cpu): decoding,
// planning if the execution was the first to need it, and running. Its share of what serves all requests (gRPC's
// connections, Go's garbage collection) is no part of it; /metrics, the log and server-timing show that apart.
//
// Rows spooled are rows written to temporary files, each as often as it was written (sql/spill).
//
// Some columns are always 0: disk I/O cost (of HDDs) and delay of leader refresh (one server leads), because there is nothing to count; filesystem
// delay, because the server does not measure it yet.
//
// Left out: SUPPORTED_OPTIMIZER_VERSIONS (sql/system has it), and tables about
// what Crowfoot does not have: recommendations, vector indexes, graph operations.
//
// Imports of this module: kv, mvcc, schema, stats/cpu, stats/distribution, stats/live, stats/stripe, value.
package stats
