// Package job runs long work on a database: filling new columns and indexes, partitioned DML, deleting expired rows,
// validating existing rows.
//
// A job goes over the rows of a table, or the entries of an index, in the order of their keys. It finds a chunk of them
// in a snapshot, bounded by rows and bytes (table.Chunk), and does the work of that chunk in one transaction. If the
// transaction is too large, the job tries half of the chunk, and so on down to one row.
//
// With each chunk the job commits a checkpoint: the last key of the chunk, and the job's counts so far. A job may be
// interrupted by an error, a cancelled context or the end of the process. If it is run again under the same name, it
// continues after its checkpoint. So no chunk is done twice.
//
// The package runs the chunks of a job one after the other, and it keeps no list of the jobs. Callers that run jobs in
// parallel, or list the jobs, do so themselves.
//
// Imports of this module: kv, schema, table, txn, usererror.
package job
