// Package columnar keeps copies of tables and indexes whose rows are stored column by column, for reads of many rows.
//
// A copy consists of chunks, which cover disjoint ranges of keys. A chunk has a timestamp and all rows, or index entries, that a read at this
// timestamp sees in its range, in the order of their keys. It has at most MaxRows rows, in one blob for each column. Commits do no work for
// copies. A read at T takes the rows of a chunk and merges them with the changes after the chunk's timestamp up to T, which the versions of the
// keys provide (mvcc.Versions.Changes). It reads the table itself where no chunk covers a range, or where the chunk is too new or too old. So a
// Reader shows the same rows as table.Read at each timestamp, however old a copy is, and also while a copy has only some of its chunks. A read
// costs more where much has changed.
//
// The records of a copy are in space 0, beside others about the database. They have no versions:
//
//	space 0 (4 bytes) | columnar/chunk/  | space (4) | table or index (4) | chunk (8) | 00
//	space 0 (4 bytes) | columnar/column/ | space (4) | table or index (4) | chunk (8) | column (4) | 00
//
// The first is the chunk's record (record.go), the second the blob of a column (coding.go). The batch that writes a chunk also marks the records of
// the chunks that it replaces as dead. The blobs of dead chunks are deleted when no Reader can use them any more, or by the next start.
//
// The package leaves out which tables have copies and when a chunk is written anew: package database/copies decides that.
//
// Imports of this module: kv, memory, mvcc, schema, table, usererror, value, value/columnar.
package columnar
