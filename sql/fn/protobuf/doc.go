// Package protobuf has GoogleSQL's functions on fields of PROTO, and converts PROTO and ENUM from and to text.
//
// Imports of this module: sql/fn, sql/tree, usererror, value.
package protobuf
