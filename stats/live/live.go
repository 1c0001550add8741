// Package live lists the current activity of a database: running queries, running partitioned DML, and the newest
// transactions that have a tag. Each of these transactions has a timeline, which lists its events with their times.
// Nothing is stored: a restart begins with empty lists.
//
// Users read the queries and the partitioned DML as tables of SPANNER_SYS (package stats makes the rows), and the
// timelines as JSON (/debug/transactions).
//
// Imports of this module: stats/stripe.
package live

import "time"

// Lists holds the current activity of one database. Any goroutine may call its methods.
type Lists struct {
	off         bool
	queries     queries
	partitioned partitionedDMLs
	timelines   timelines
}

// New returns empty lists. The ids of queries start at the given time, in nanoseconds since 1970, so that they differ
// from the ids of an earlier process.
func New(now time.Time) *Lists {
	l := &Lists{}
	l.queries.begin(now)
	return l
}

// Off returns lists that record neither queries nor transactions.
func Off() *Lists { return &Lists{off: true} }
