// Package database holds what one server serves: instances and their databases in one store. Package server turns
// protos into calls of this package, and rows into protos.
//
// A Registry makes, finds and drops databases, and keeps the records of operations and sessions. A Database puts
// together the parts of one database: its transactions (package txn), its schema versions and their changes
// (schemachange), the statements prepared for each version (prepare), splits (split) and change streams (package
// changestream). Besides serving requests, a database works in the background: it collects old versions, keeps
// statistics, deletes expired rows (ttl) and keeps columnar copies up to date (copies).
//
// Sessions in use, transaction ids and tokens belong to package server. Only one process may open a store.
//
// Locks are taken in this order; a goroutine that holds one takes only those that stand below it:
//
//	Registry.mu                 for moments, and while records of instances and databases are written or removed
//	Database.records            while the record of the database is written or removed
//	background.Work             shared for a whole schema change, or a whole collection of old versions;
//	                            exclusively by End, for a moment
//	schemachange.Manager.Token  for a whole schema change; a collection takes it only if it is free
//	Registry.deleting           for a pass over the expired rows of one database
//	copies.Upkeep.StepMu        for a step of the upkeep of columnar copies
//	Registry.copying            while a chunk of a columnar copy is written, and in the pause after it
//	locks of txn, changestream and sequence    see those packages
//	cache.Budget, cache.Cache   for moments
//
// Reads, queries and commits take only the locks in the last two lines, because they find databases and schema versions
// without a lock.
//
// The following wait for others:
//
//	Registry.Close   waits for the goroutines that collect old versions and divide large splits, then for the
//	                 background work and the schema change of each database
//	Dropped.Erase    waits for the background work and the schema change of its databases, then takes Registry.mu
//	BeginDatabase    waits for Dropped.Erase of a database of the same name; it does not hold Registry.mu meanwhile
//	a schema change  waits for another schema change of the same database, and while a collection deletes old schema
//	                 versions
//	a collection     waits for the collections of other databases, since one goroutine makes all of them; after a
//	                 drop, it also waits for the schema change of the dropped database to end
//	ttl.Deletion     waits for the passes of other databases
//	copies.Upkeep    waits while other databases write chunks and pause afterwards
//
// Imports of this module: changestream, columnar, database/background, database/cache, database/copies, database/job, database/meta, database/prepare, database/schemachange, database/sequence, database/split, database/ttl, kv, memory, mvcc, schema, sql/exec, sql/plan, sql/spill, stats, stats/cpu, stats/live, table, txn, usererror, value.
package database
