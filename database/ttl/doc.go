// Package ttl applies the row deletion policies of a database: it deletes rows whose time to live has ended. It deletes
// them in small transactions, which give way to those of users. A pass that is interrupted continues after a restart.
//
// Package table finds and deletes the expired rows.
//
// Lock order: Config.Token, held for a whole pass over all tables, before the locks of the transactions of its jobs. A
// goroutine holds the mutex of a Deletion only for moments and waits for nothing meanwhile.
//
// Imports of this module: database/background, database/job, schema, stats, stats/cpu, table, usererror.
package ttl
