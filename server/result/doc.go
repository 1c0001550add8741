// Package result turns rows into the messages of a reply: one ResultSet, or a stream of PartialResultSets with resume tokens.
//
// It promises that rows go to the wire as the bytes that the row source appends, without a proto message per value, and that a
// stream which is resumed from a token goes on with the value, or the piece of a value, that the client lacks.
//
// It leaves out where rows come from and what they cost.
//
// Imports of this module: changestream, mvcc, server/rpc, server/token, sql/plan, usererror, value.
package result
