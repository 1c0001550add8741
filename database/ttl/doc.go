// Package ttl applies the row deletion policies of a database: it deletes rows whose time to live has ended. The rows go in
// small transactions, which give way to those of users. A pass that ends early goes on after a restart.
//
// What it leaves out: how expired rows are found and deleted, which belongs to package table.
//
// Lock order: Config.Token, held for a whole pass over all tables, before the locks of the transactions of its jobs. The mutex of a
// Deletion is held for moments, and nothing waits under it.
//
// Imports of this module: database/background, database/job, schema, stats, stats/cpu, table, usererror.
package ttl
