package txn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// OutcomeLife is the least time for which the outcome of a commit is stored, so that a client that did not get the
// reply can ask again.
const OutcomeLife = time.Hour

// A ClientID names a transaction to its client, also after a restart of the server. It is unique in the store. If no
// client can name a transaction, its ClientID is zero, and its outcome is not stored.
type ClientID struct {
	Start  uint32 // number of the server start in which the id was made; see database.Identity
	Number uint64 // Manager.Now in microseconds when the transaction began, or more if several began in one microsecond
}

// An Outcome is the stored result of a commit.
type Outcome struct {
	Timestamp mvcc.Timestamp
	Mutations int64 // the count that commit_stats reports
	Isolation Isolation
}

// Outcomes are records of space 0. Each is written in the batch of its commit:
//
//	key    space 0 (4 bytes) | txn/outcome/ | period (4) | start (4) | number (8) | 00
//	value  timestamp (8 bytes) | isolation (1) | mutations, uvarint
//
// The period is the period of 10 minutes in which the commit timestamp lies. If the clock has gone back since the
// transaction began, it is the period of the transaction's begin. One range deletion deletes all records of a period. A
// look-up, which is rare, tries every period since OutcomeLife ago.
const (
	outcomeName   = "txn/outcome/"
	outcomePeriod = mvcc.Timestamp(10 * time.Minute / time.Microsecond)
)

func periodOf(ts mvcc.Timestamp) uint32 { return uint32(ts / outcomePeriod) }

// Began returns the timestamp at which the transaction began, or a little later.
func (id ClientID) Began() mvcc.Timestamp { return mvcc.Timestamp(id.Number) }

// outcomePrefix returns the common prefix of the keys of a period's outcomes.
func outcomePrefix(period uint32) []byte {
	key := append(make([]byte, 4, 4+len(outcomeName)+4+4+8+1), outcomeName...)
	return binary.BigEndian.AppendUint32(key, period)
}

// outcomeBound returns a key before all outcomes of a period and after those of the period before. The key ends in 00
// like all keys without a version: the store takes a last byte of 09 for the mark of a version.
func outcomeBound(period uint32) []byte { return append(outcomePrefix(period), 0) }

func outcomeKey(period uint32, id ClientID) []byte {
	key := binary.BigEndian.AppendUint32(outcomePrefix(period), id.Start)
	return append(binary.BigEndian.AppendUint64(key, id.Number), 0)
}

// putOutcome adds the outcome of a commit to its batch.
func putOutcome(b kv.Batch, id ClientID, o Outcome) error {
	var room [8 + 1 + binary.MaxVarintLen64]byte
	val := append(binary.BigEndian.AppendUint64(room[:0], uint64(o.Timestamp)), byte(o.Isolation))
	return b.Put(outcomeKey(periodOf(max(o.Timestamp, id.Began())), id), binary.AppendUvarint(val, uint64(o.Mutations)))
}

// Outcome returns the outcome of a transaction of any database of the store. ok is false if no outcome is stored: the
// transaction is open, has ended without a commit, or had nothing to write. If Expired is true for id, the outcome
// may also have been deleted.
func (m *Manager) Outcome(id ClientID) (outcome Outcome, ok bool, err error) {
	newest := periodOf(max(m.oracle.Now(), id.Began()))
	for period := m.oracle.oldestPeriod(); period <= newest && !ok && err == nil; period++ {
		outcome, ok, err = m.oracle.outcomeIn(period, id)
	}
	return outcome, ok, err
}

// Expired reports whether a transaction began so long ago that the outcome of its commit may have been deleted.
func (m *Manager) Expired(id ClientID) bool { return id.Began() < m.oracle.outcomesFrom() }

// outcomesFrom returns the timestamp that lies OutcomeLife in the past. The outcomes of all commits since then are
// stored.
func (o *Oracle) outcomesFrom() mvcc.Timestamp {
	return max(o.Now()-mvcc.Timestamp(OutcomeLife.Microseconds()), 0)
}

func (o *Oracle) oldestPeriod() uint32 { return periodOf(o.outcomesFrom()) }

func (o *Oracle) outcomeIn(period uint32, id ClientID) (outcome Outcome, ok bool, err error) {
	key := outcomeKey(period, id)
	it, err := o.store.NewIter(key, append(key, 0))
	if err != nil {
		return Outcome{}, false, fmt.Errorf("look up outcome: %w", err)
	}
	defer it.Close()
	if !it.First() {
		return Outcome{}, false, it.Error()
	}
	val, err := it.Value()
	if err != nil {
		return Outcome{}, false, fmt.Errorf("read outcome: %w", err)
	}
	if len(val) < 8+1+1 {
		return Outcome{}, false, fmt.Errorf("outcome %x is malformed", val)
	}
	mutations, _ := binary.Uvarint(val[9:])
	return Outcome{mvcc.Timestamp(binary.BigEndian.Uint64(val)), int64(mutations), Isolation(val[8])}, true, nil
}

// ForgetOutcomes deletes the outcomes of all periods that ended more than OutcomeLife ago. It does not sync: if a
// crash undoes the deletion, the next call repeats it.
func (o *Oracle) ForgetOutcomes() error {
	lower, upper := outcomeBound(0), outcomeBound(o.oldestPeriod())
	it, err := o.store.NewIter(lower, upper)
	if err != nil {
		return fmt.Errorf("forget outcomes: %w", err)
	}
	some := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil || !some {
		return err
	}
	b := o.store.NewBatch()
	defer b.Close()
	b.UseReserve()
	if err := errors.Join(b.DeleteRange(lower, upper), b.CommitNoSync()); err != nil {
		return fmt.Errorf("forget outcomes: %w", err)
	}
	return nil
}
