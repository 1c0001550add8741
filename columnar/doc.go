// Package columnar keeps copies of tables and indexes whose rows are stored column by column, for reads of many rows.
//
// A copy is chunks: disjoint ranges of keys. A chunk has a timestamp and all rows, or entries, that a read at this timestamp sees in its range, in the order of their
// keys: at most MaxRows, in one blob for each column. A commit does nothing for copies. A read at T finds the rows of a chunk, and lays over
// them what has changed after the chunk's timestamp up to T, which the versions of the keys tell (mvcc.Versions.Changes). What no chunk covers, and what a
// chunk is too new or too old for, is read from the rows themselves. So a Reader shows the same rows as table.Read at each timestamp, however
// old a copy is, and also while the copy has only some of its chunks; it costs more where much has changed.
//
// The records of a copy stand in space 0, beside others about the database. They have no versions:
//
//	space 0 (4 bytes) | columnar/chunk/  | space (4) | table or index (4) | chunk (8) | 00
//	space 0 (4 bytes) | columnar/column/ | space (4) | table or index (4) | chunk (8) | column (4) | 00
//
// The first is the chunk's record (record.go), the second the blob of a column (coding.go). A chunk is written in one batch with the records of the chunks that it
// replaces, which say from then on that those are dead. The blobs of dead chunks are deleted when no Reader can use them, or by the next start.
//
// It leaves out which tables have copies and when a chunk is written anew: package database decides that.
//
// Imports of this module: kv, memory, mvcc, schema, table, usererror, value, value/columnar.
package columnar
