package server

import (
	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/txn"
)

// Which splits an execution goes to is noted for two ends. Executions whose CPU time is measured stand for the others, so the
// splits they go to are charged with it: SPLIT_STATS. And an execution that may read in several splits has its remote calls
// counted, if the database has several. Both are a matter of a comparison or two for any other.

// visits has the splits noted that the execution goes to, if anybody wants to know. It is told which kind it is first. A
// point is in one split.
func (e *execution) visits(point bool) {
	weight := e.cpu.Weight()
	if e.visit.Begun() || weight == 0 && (point || !e.db.IsSplit(e.began)) {
		return
	}
	e.db.Visit(&e.visit, e.began, weight)
}

// wrote notes a commit, and what it has written if it stands for others.
func (e *execution) wrote(db *database.Database, tx *txn.Tx) {
	if tx.Stats().Keys > 0 {
		e.commits++
	}
	weight := e.cpu.Weight()
	if weight == 0 {
		return
	}
	if e.db = db; !e.visit.Begun() {
		db.Visit(&e.visit, e.began, weight)
	}
	tx.EachWrite(e.visit.Wrote)
}
