// Package protobuf has GoogleSQL's functions on fields of PROTO, and the texts of PROTO and ENUM.
//
// Imports of this module: sql/fn, sql/tree, usererror, value.
package protobuf
