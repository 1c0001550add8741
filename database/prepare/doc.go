// Package prepare prepares statements, reads and mutations for one schema version, and keeps the results for later
// requests: statements with their plans, the columns that READs name, the data that mutations of the same kind share,
// and the privileges that each of these needs. It also compiles the expressions in DDL.
//
// A Preparer belongs to one schema version. It is empty at first, and closed when the version is deleted. Statements
// whose texts differ only in literals share a plan if their own plans would differ only in these literals: see
// genericPlan.
//
// Which schema versions there are is decided in package schemachange. Transactions belong to package txn. A request may
// use what was prepared for a version even after the version is deleted.
//
// Lock order: a request that waits for another one to prepare its text holds no lock. A request holds
// Preparer.analyzing while it makes an analyzer, and waits for nothing else meanwhile. The locks of caches come last.
//
// Imports of this module: columnar, database/cache, database/sequence, memory, schema, sql/analyze, sql/exec, sql/fn, sql/plan, sql/spill, sql/system, sql/tree, stats, stats/cpu, table, usererror, value, value/columnar.
package prepare
