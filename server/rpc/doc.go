// Package rpc is what lies between the protocols that requests come over and the handlers that answer them: the table of
// services and methods (method.go), a request's life (call.go), and the one interface that a protocol implements
// (transport.go). gRPC (server/grpc) and REST (server/rest) plug in there; handlers see neither.
//
// It promises that a panic in a handler ends that request alone, that a method of the proto service without a handler
// answers UNIMPLEMENTED by name, and that every call is counted, timed and logged when it ends.
//
// It leaves out what a call cost in rows, locks and CPU time, which server/cost records, and how an error becomes a status,
// which is server/status.
//
// Imports of this module: memory, resultset, server/cost, server/status, stats, stats/cpu, stats/live, stats/metrics, table, usererror.
package rpc
