package stats

import (
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// A LockWait is one lock request that had to wait.
type LockWait struct {
	Key      string // start of the range of keys that was to be locked, in the form of KeyText
	End      time.Time
	Wait     time.Duration
	Requests []LockRequest // requests of the waiting transaction and of the transactions that held the lock
}

// These constants say what each element of tally.sums means in the statistics of waits for locks.
const (
	lockWait = iota
	lockSums
)

// LockWait counts a wait for a lock. It does not keep w after it returns.
func (c *Collector) LockWait(w *LockWait) {
	if c.cfg.Off {
		return
	}
	name := cut(w.Key, maxLockKey)
	fp := fingerprint(name)
	s := c.enter()
	defer s.mu.Unlock()
	b := s.at(c, w.End).board(locks)
	key := subjectKey(fp, 0)
	t := b.tallies[key]
	if t == nil {
		t = b.add(key, subject{fingerprint: fp, name: name})
	}
	t.sums[lockWait] += int64(w.Wait)
	for _, r := range w.Requests {
		r.Tag = Tag(r.Tag)
		t.sample(r)
	}
}

var lockColumns = []column{
	intervalEnd,
	top(column{name: "ROW_RANGE_START_KEY", typ: value.BytesType, of: func(r row) value.Value { return value.OfBytes([]byte(r.subject.name)) }}),
	sumSeconds("LOCK_WAIT_SECONDS", lockWait),
	top(column{name: "SAMPLE_LOCK_REQUESTS", typ: samplesType, of: func(r row) value.Value { return samplesValue(r.samples) }}),
	top(column{name: "SAMPLE_LOCK_REQUESTS_JSON_STRING", typ: value.StringType, of: func(r row) value.Value { return value.OfString(structsText(samplesType, samplesValue(r.samples))) }}),
}

var lockTotalColumns = []column{
	intervalEnd,
	sumSeconds("TOTAL_LOCK_WAIT_SECONDS", lockWait),
}

var samplesType = value.ArrayOf(value.StructOf(
	value.Field{Name: "COLUMN", Type: value.StringType},
	value.Field{Name: "LOCK_MODE", Type: value.StringType},
	value.Field{Name: "TRANSACTION_TAG", Type: value.StringType},
))

func samplesValue(list []LockRequest) value.Value {
	return structs(list, func(r LockRequest) []value.Value {
		return []value.Value{value.OfString(r.Column), value.OfString(r.Mode), value.OfString(r.Tag)}
	})
}
