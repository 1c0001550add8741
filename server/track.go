package server

import (
	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/txn"
)

// The splits that an execution goes to are tracked for two purposes. Executions whose CPU time is measured stand for the others, so the
// splits they go to are charged with it: SPLIT_STATS. And an execution that may read in several splits has its remote calls
// counted, if the database has several. Any other execution costs a comparison or two.

// track begins to track the splits of the execution if that serves either purpose. The kind of the execution is known before. A
// point lies in one split.
func (e *execution) track(point bool) {
	weight := e.cpu.Weight()
	if e.tracker.Active() || weight == 0 && (point || !e.db.Splits().Many(e.began)) {
		return
	}
	e.db.Splits().Track(&e.tracker, e.began, weight)
}

// wrote counts a commit, and tracks what it has written if the execution stands for others.
func (e *execution) wrote(db *database.Database, tx *txn.Tx) {
	if tx.Stats().Keys > 0 {
		e.commits++
	}
	weight := e.cpu.Weight()
	if weight == 0 {
		return
	}
	if e.db = db; !e.tracker.Active() {
		db.Splits().Track(&e.tracker, e.began, weight)
	}
	tx.EachWrite(e.tracker.Wrote)
}
