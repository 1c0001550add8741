// Package copies keeps the columnar copies of a database up to date. The tables and indexes whose columnar_policy is
// 'enabled' have a copy. This package makes the copy, writes its chunks anew when rows have changed, and drops the copy
// when the policy no longer asks for it.
//
// Package columnar defines what a chunk is, how a chunk is written and how copies are read. Package prepare decides
// which reads use a copy.
//
// Lock order: Upkeep.StepMu, held for a step, before Config.Token, held while a chunk is written and in the pause after
// it, before the locks of package columnar. So a step may wait while another database of the store writes a chunk and
// pauses. Another mutex guards the counts that Policies shows. A goroutine holds it only for moments and waits for
// nothing meanwhile, so Policies does not wait for a step.
//
// Imports of this module: columnar, database/background, kv, memory, mvcc, schema, stats, stats/cpu, table, txn, usererror.
package copies
