// Package conversion has GoogleSQL's CAST.
//
// Imports of this module: sql/fn, sql/fn/operators, sql/fn/protobuf, sql/fn/sqltext, sql/fn/text, sql/fn/timestamps, usererror, value.
package conversion
