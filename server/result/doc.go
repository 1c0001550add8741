// Package result turns rows into the messages of a reply: one ResultSet, or a stream of PartialResultSets with resume
// tokens.
//
// The package promises that rows go to the wire as the bytes that the row source appends, without a proto message per
// value. A stream resumed from a token continues with the value, or the piece of a value, that the client lacks.
//
// The callers choose the source of the rows and record the cost of the request.
//
// Imports of this module: changestream, mvcc, server/rpc, server/token, sql/plan, usererror, value.
package result
