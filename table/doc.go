// Package table converts rows to keys and values and back. It owns their layout: Layout for keys, rowVersion for
// values. It reads: a KeySet becomes spans, and Read returns Rows, which go straight from stored bytes to the wire. It
// writes: Changes writes a row with its index entries, defaults and generated columns, and checks its parent, children
// and constraints. And it does the work of a schema change on existing rows.
//
// It promises that all writes keep rows and index entries in step, whichever API they come through, and that reading
// allocates nothing per row.
//
// It leaves out transactions. A View or Writer, which txn implements, locks, buffers and versions the keys and values.
//
// Imports of this module: memory, mvcc, schema, usererror, value.
package table
