// Package background holds what the parts of a database need that work besides requests: the life of such work (Work), what
// SPANNER_SYS.TASKS shows of it (Task), a Token that one goroutine at a time holds, and Sleep.
//
// What it leaves out: the work itself.
//
// Imports of this module: stats, usererror.
package background
