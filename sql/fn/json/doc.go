// Package json has GoogleSQL's functions on JSON.
//
// Imports of this module: sql/fn, sql/fn/protobuf, sql/fn/sqltext, sql/tree, usererror, value.
package json
