// Package flight is Arrow Flight SQL (https://arrow.apache.org/docs/format/FlightSql.html): a service beside google.spanner.v1.Spanner, whose commands
// become requests of that. So they have the same sessions, transactions, statements, limits and statistics; what differs is that rows come
// as Arrow's columns.
//
// A client says in the header database which database it means, as in projects/P/instances/I/databases/D.
//
// A ReadRequest or an ExecuteSqlRequest of google.spanner.v1 is a command, too, which names its session and transaction itself: the rows of a partition that
// PartitionRead or PartitionQuery has made come as columns.
//
// It promises that tickets and handles are self-contained: they are sealed requests, good for several readers, in other processes, and after
// a restart, as long as the database keeps the versions that are read. Only which transaction a prepared statement runs in after its own has ended follows from
// the connection (connection.go). The read timestamp of a query is that of GetFlightInfo.
//
// It leaves out how requests are answered, which is server's, and what Arrow's types are, which is arrowtype's.
//
// Imports of this module: arrowmessage, memory, server/result, server/rpc, server/token, sql/analyze, sql/plan, table, usererror, value, value/columnar, version.
package flight
