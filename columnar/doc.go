// Package columnar keeps copies of tables and indexes whose rows are stored column by column, for reads of many rows.
//
// A copy consists of chunks, which cover disjoint ranges of keys. A chunk has a timestamp and all rows, or index
// entries, that a read at this timestamp sees in its range, in the order of their keys. It has at most MaxRows rows,
// in one blob for each column. Commits do no work for copies. A read at T takes the rows of a chunk and merges them
// with the changes after the chunk's timestamp up to T, which the versions of the keys provide
// (mvcc.Versions.Changes). Where no chunk covers a range, or where the chunk is too new or too old, the read takes the
// rows from the table itself. So a Reader shows the same rows as table.Read at each timestamp, however old a copy is,
// and even while a copy has only some of its chunks. The more rows have changed, the more a read costs.
//
// The records of a copy are in space 0, as are other records about the database. They have no versions. Their keys
// are:
//
//	space 0 (4 bytes) | columnar/chunk/  | space (4) | table or index (4) | chunk (8) | 00
//	space 0 (4 bytes) | columnar/column/ | space (4) | table or index (4) | chunk (8) | column (4) | 00
//
// The first key is that of a chunk's record (record.go), the second that of a column's blob (coding.go). The batch
// that writes a chunk also marks the records of the chunks that it replaces as dead. The blobs of dead chunks are
// deleted when no Reader can use them any more, or by the next start.
//
// Package database/copies decides which tables have copies and when a chunk is written anew.
//
// Imports of this module: kv, memory, mvcc, schema, table, usererror, value, value/columnar.
package columnar
