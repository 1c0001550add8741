// Package schemachange holds the schema versions of a database, and makes new ones by DDL statements.
//
// A schema change never stops reads, and it stops writes only for the moment in which it publishes a new catalog. A
// read at a timestamp uses the version that was valid at that timestamp. A version stays in the store for as long as
// anything can be read at its timestamps. A change that has work to do on existing rows goes through stages: see
// rowsChange. If the server stops in the middle, the next process resumes the change or undoes it.
//
// Package schema decides what a statement changes in a catalog. Package table decides which rows to write or to check.
// The operations that run statements belong to package server.
//
// Lock order: background.Work, held shared for a whole schema change, before Manager.Token, held for a whole change,
// before the gate at which package txn lets a change publish a catalog, before the locks of change streams and
// sequences. Requests take none of these: the list of versions is replaced, never changed. Garbage collection takes
// Manager.Token only if it is free, so it never waits for a schema change. But a change waits while Forget writes its
// batch.
//
// Imports of this module: changestream, database/background, database/job, database/meta, database/prepare, database/sequence, kv, mvcc, schema, stats/cpu, table, txn, usererror.
package schemachange
