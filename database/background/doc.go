// Package background holds tools for goroutines that work for a database in the background, besides its requests. Work
// starts and stops them. Task is the status of one kind of work, as SPANNER_SYS.TASKS shows it. A Token is a lock whose
// waiters can give up. Sleep waits for a duration, or until a context ends.
//
// The package does not define what the goroutines do.
//
// Imports of this module: stats, usererror.
package background
