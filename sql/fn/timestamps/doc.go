// Package timestamps has GoogleSQL's functions and operators on dates, timestamps and intervals.
//
// Imports of this module: sql/fn, sql/fn/sqltext, usererror, value.
package timestamps
