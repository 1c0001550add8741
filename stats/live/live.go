// Package live lists what happens in a database at this moment: queries that run
// now, partitioned DML that runs now, and the newest transactions that have a
// tag with what they did when. Nothing of it is stored: a restart begins with empty lists.
//
// Users read the lists as tables of SPANNER_SYS (package stats makes the rows) and the timelines as JSON.
//
// Imports of this module: stats/stripe.
package live

import "time"

// Lists are what happens in one database. Their methods may be called by any goroutine.
type Lists struct {
	off         bool
	queries     queries
	partitioned partitionedDMLs
	timelines   timelines
}

// New makes empty lists. The ids of queries grow from now, so that they differ from those of an earlier process.
func New(now time.Time) *Lists {
	l := &Lists{}
	l.queries.begin(now)
	return l
}

// Off makes lists in which queries and transactions leave nothing.
func Off() *Lists { return &Lists{off: true} }
