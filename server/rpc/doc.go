// Package rpc lies between the protocols that carry requests and the handlers that answer them. It holds the table of
// services and methods (method.go), a request's life (call.go), and the one interface that a protocol implements
// (transport.go). gRPC (server/grpc) and REST (server/rest) implement it; handlers see neither.
//
// It promises that a panic in a handler ends only that request, that a method of the proto service that has no handler
// answers UNIMPLEMENTED with the name of the method, and that every call is counted, timed and logged when it ends.
//
// Package server/cost records what a call costs in rows, locks and CPU time; server/status converts errors to statuses.
//
// Imports of this module: memory, protovalue, server/cost, server/status, stats, stats/cpu, stats/live, stats/metrics, table, usererror.
package rpc
