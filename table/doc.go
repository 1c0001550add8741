// Package table converts rows to keys and values and back. It defines their form: Layout describes the keys, and the
// comment of rowVersion describes the values. To read, Layout.Spans turns a KeySet into spans of keys, and a Read opens
// Rows, which encode stored bytes directly in wire form. To write, Changes writes a row with its index entries,
// defaults and generated columns, and checks its parent, children and constraints. The package also does the work of
// a schema change on existing rows: it fills new columns and indexes, and validates constraints.
//
// It promises two things. All writes, whichever API they come through, keep rows and index entries consistent. Reading
// allocates nothing per row.
//
// Transactions are not part of this package: a View or Writer, which package txn implements, locks keys, buffers
// writes and reads versions.
//
// Imports of this module: memory, mvcc, schema, usererror, value.
package table
