// Package text has GoogleSQL's functions on STRING and BYTES, with FORMAT, LIKE and regular expressions.
//
// Imports of this module: sql/fn, sql/fn/json, sql/fn/sqltext, sql/tree, usererror, value.
package text
