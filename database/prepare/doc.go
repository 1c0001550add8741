// Package prepare makes what requests need of a schema version, and keeps it for the next requests: statements with their
// plans, the columns that reads name, what mutations of a kind share, and the privileges that each of them needs. It also
// compiles the expressions in DDL.
//
// A Preparer belongs to one schema version. It is made empty, and what it keeps is dropped with the version. Statements whose
// texts differ only in literals share a plan where both have the same plan: see genericPlan.
//
// What it leaves out: which schema versions there are, and transactions. A request may use what was prepared for a version
// after the version is gone.
//
// Lock order: a request that waits for another one to prepare its text holds no lock. Preparer.analyzing is held while an
// analyzer is made, and nothing else waits under it. The locks of caches come last.
//
// Imports of this module: columnar, database/cache, database/sequence, memory, schema, sql/analyze, sql/exec, sql/fn, sql/plan, sql/spill, sql/system, sql/tree, stats, stats/cpu, table, usererror, value, value/columnar.
package prepare
