package cost

import (
	"time"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/txn"
)

// AddMutations adds rows, or ranges of rows, that mutations name.
func (r *Recorder) AddMutations(rows int64) { r.write.mutations += rows }

// AddCommitWait adds the time that a commit waited for locks.
func (r *Recorder) AddCommitWait(d time.Duration) { r.locks.committing += d }

// AddCommit adds a transaction that was committed. If the request stands for others, the splits that the transaction has
// written in are noted.
func (r *Recorder) AddCommit(db *database.Database, tx *txn.Tx) {
	if tx.Stats().Keys > 0 {
		r.AddCommits(1)
	}
	weight := r.CPU.Weight()
	if weight == 0 {
		return
	}
	if r.db = db; !r.Splits.Active() {
		db.Splits().Track(&r.Splits, r.Began, weight)
	}
	tx.EachWrite(r.Splits.Wrote)
}

// AddCommits adds commits that wrote something.
func (r *Recorder) AddCommits(n int64) { r.write.commits += n }

// TrackSplits has the splits noted that the request goes to, if that is of interest, for one of two reasons. Requests whose CPU
// time is measured stand for the others, so the splits they go to are charged with it: SPLIT_STATS. And a request that may
// read in several splits has its remote calls counted, if the database has several. A request that point says reads one row is in
// one split. All others pay for a comparison or two.
//
// The kind of the request must have been started.
func (r *Recorder) TrackSplits(point bool) {
	weight := r.CPU.Weight()
	if r.Splits.Active() || weight == 0 && (point || !r.db.Splits().Many(r.Began)) {
		return
	}
	r.db.Splits().Track(&r.Splits, r.Began, weight)
}
