// Package result turns rows into the messages of a reply: one ResultSet, or a stream of PartialResultSets with resume
// tokens.
//
// It promises that rows go to the wire as the bytes that the row source appends, without a proto message per value. A
// stream resumed from a token continues with the value, or the piece of a value, that the client lacks.
//
// Where rows come from and what they cost belongs to the callers.
//
// Imports of this module: changestream, mvcc, server/rpc, server/token, sql/plan, usererror, value.
package result
