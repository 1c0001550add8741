// Package server is Cloud Spanner's API: protos in, protos out, over gRPC and
// REST. This package owns sessions, the transactions that requests name, reads, queries, DML and commits; below it lie the
// transports (grpc, rest), the administrative services (admin), a request's life (rpc), its cost (cost), and the
// framing of rows into messages (result).
//
// It promises that a panic in a request ends that request alone, that every
// error a client sees carries a canonical code, and that rows go from the
// engine to the wire as bytes: no message is built per value.
//
// It leaves out what the data means: names, types, rows, transactions and
// schemas are database's. Backups, IAM, instance partitions and the routing
// cache answer UNIMPLEMENTED.
//
// A request reaches a method of the table in service.go; session.go finds its session, scope.go the snapshot or transaction that
// it runs in, and then one file per family of RPCs answers it: read.go, query.go, dml.go, commit.go.
//
// Imports of this module: database, database/split, memory, mvcc, schema, server/admin, server/cost, server/flight, server/grpc, server/listener, server/listing, server/rest, server/result, server/rpc, server/status, server/token, sql/analyze, sql/exec, sql/plan, stats, stats/cpu, stats/live, stats/metrics, table, txn, usererror, value, version.
package server
