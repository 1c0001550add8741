// Package table turns rows into keys and values and back. It owns their layout
// (Layout for keys, rowVersion for values), reads (KeySet to spans, Read to
// Rows, straight from stored bytes to the wire) and writes (Changes: with a row
// go its index entries, defaults, generated columns, children and constraints),
// and what a schema change does to rows that exist.
//
// It promises that all writes keep rows and index entries in step, whichever
// API they come through, and that reading allocates nothing per row.
//
// It leaves out transactions: a View or Writer, which txn implements, locks,
// buffers and versions what is read and written here.
//
// Imports of this module: memory, mvcc, schema, usererror, value.
package table
