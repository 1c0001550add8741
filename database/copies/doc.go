// Package copies keeps the columnar copies of a database up to date. The tables and indexes whose columnar_policy is 'enabled'
// have a copy: this package makes it, writes its chunks anew when rows have changed, and drops it when the policy does.
//
// What it leaves out: what a chunk is, how one is written and how copies are read, which belongs to package columnar; and which
// reads use a copy.
//
// Lock order: Upkeep.StepMu, held for a step, before Config.Token, held while a chunk is written and in the rest after it, before the
// locks of package columnar. So a step may wait while another database of the store writes a chunk and rests. The mutex of the
// counts that Policies shows is held for moments, and nothing waits under it: Policies does not wait for a step.
//
// Imports of this module: columnar, database/background, kv, memory, mvcc, schema, stats, stats/cpu, table, txn, usererror.
package copies
