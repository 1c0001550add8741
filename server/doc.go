// Package server implements Cloud Spanner's API over gRPC and REST. This package owns sessions, transactions named by
// requests, reads, queries, DML and commits. Below it are the packages for the transports (grpc, rest), the
// administrative services (admin), the handling of a request from its start to its end (rpc), the measuring of its cost
// (cost), and the framing of rows into messages (result).
//
// The server promises that a panic in a request ends only that request, that every error a client sees has a canonical
// code, and that rows go from the engine to the wire as bytes: no message is built per value.
//
// The meaning of the data (names, types, rows, transactions, schemas) belongs to package database. Methods for features
// that Crowfoot does not have answer UNIMPLEMENTED: see docs/limits.md.
//
// A request reaches one of the methods that the table in service.go lists. session.go finds its session, and scope.go
// the snapshot or transaction that it runs in. Then one file per family of RPCs answers it: read.go, query.go, dml.go,
// commit.go.
//
// Imports of this module: database, database/prepare, database/split, memory, mvcc, schema, server/admin, server/cost, server/flight, server/grpc, server/listener, server/listing, server/rest, server/result, server/rpc, server/status, server/token, sql/analyze, sql/exec, sql/plan, stats, stats/cpu, stats/live, stats/metrics, table, txn, usererror, value, version.
package server
