// Package job runs long work on a database: filling new columns and indexes, partitioned DML, deleting expired rows,
// validating existing rows.
//
// A job goes over the rows of a table, or the entries of an index, in the order of their keys. It finds a chunk of them in a
// snapshot, bounded by rows and bytes (table.Chunk), and does the work of that chunk in one transaction. What a transaction refuses to
// write because it is too much is done again in halves, down to one row.
//
// With each chunk the job commits a checkpoint: the last key of the chunk, and what the job has counted so far. A job that was
// interrupted, by an error, a cancelled context or the end of the process, and is run again under the same name goes on behind its
// checkpoint. So no chunk is done twice.
//
// What it leaves out: running several chunks at once, and remembering which jobs there are. Its callers do.
//
// Imports of this module: kv, schema, table, txn, usererror.
package job
