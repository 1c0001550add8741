// Package server is Cloud Spanner's API: protos in, protos out, over gRPC and
// REST. It owns sessions, the transactions that requests name, resume and
// partition tokens, the framing of rows into messages, long-running operations,
// and the mapping of errors to statuses.
//
// It promises that a panic in a request ends that request alone, that every
// error a client sees carries a canonical code, and that rows go from the
// engine to the wire as bytes: no message is built per value.
//
// It leaves out what the data means: names, types, rows, transactions and
// schemas are database's. Backups, IAM, instance partitions and the routing
// cache answer UNIMPLEMENTED.
//
// A request's life: service.go (dispatch), session.go, scope.go (what
// it runs in), then one file per family of RPCs (read.go, query.go,
// commit.go, ...), and stream.go on the way out.
//
// Imports of this module: database, database/split, mvcc, schema, sql/exec, sql/plan, stats, stats/cpu, stats/live, stats/metrics, table, txn, usererror, value.
package server
