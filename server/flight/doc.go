// Package flight implements Arrow Flight SQL (https://arrow.apache.org/docs/format/FlightSql.html), a second API beside
// google.spanner.v1.Spanner. It translates commands to requests of that API. So both have the same sessions,
// transactions, statements, limits and statistics; only the rows come as Arrow columns.
//
// A client names its database in the header database, such as projects/P/instances/I/databases/D.
//
// A ReadRequest or an ExecuteSqlRequest of google.spanner.v1 is also a command, and names its session and transaction
// itself. With such a command a client gets the rows of a partition of PartitionRead or PartitionQuery as columns.
//
// The package promises that tickets and handles are self-contained: each is a sealed request. Several clients can use
// the same ticket, also in other processes and after a restart, as long as the database keeps the versions that the
// ticket reads. There is one exception: when the transaction of a prepared statement has ended, the connection decides
// in which transaction the statement runs next (connection.go). GetFlightInfo chooses the timestamp at which a query
// reads, and DoGet reads at this timestamp even if it comes much later.
//
// Package server executes the requests, and arrowtype has Arrow's types.
//
// Imports of this module: arrowmessage, memory, server/result, server/rpc, server/token, sql/analyze, sql/exec, sql/plan, table, usererror, value, value/columnar, version.
package flight
