package split

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/txn"
)

// Config configures a Manager.
type Config struct {
	Database string // projects/P/instances/I/databases/D, for errors
	Space    mvcc.Space
	Store    kv.Store       // where user split points are stored
	Rows     *mvcc.Versions // holds the rows whose keys are split
	Clock    func() time.Time
	Catalog  func() *schema.Catalog // returns the catalog of the newest schema version
	// SizeBounds are bounds of splits that SplitBySize found before the process started, as far as they are known. The
	// next SplitBySize removes those that lie between small splits.
	SizeBounds [][]byte
}

// Manager holds the splits of one database. Its methods may be called at any time.
type Manager struct {
	cfg     Config
	current atomic.Pointer[splits] // the splits that were computed last; nil if split points have changed since

	mu         sync.Mutex // guards the fields below, and the stored user split points
	points     []*record  // split points of users, in order of their keys; the slice is replaced, never changed
	sizeBounds [][]byte   // bounds found by SplitBySize, in order; the slice is replaced, never changed
	closed     bool

	loads loads
}

// Open returns the Manager of a database, with the user split points that are stored.
func Open(cfg Config) (*Manager, error) {
	m := &Manager{cfg: cfg}
	prefix := meta.OfSpace(meta.SplitPoint, cfg.Space)
	err := meta.Each(cfg.Store, prefix, func(name string, data []byte) error {
		r := &record{key: []byte(name[len(prefix):])}
		if err := json.Unmarshal(data, r); err != nil {
			return fmt.Errorf("read split point: %w", err)
		}
		m.points = append(m.points, r)
		return nil
	})
	ofUser := func(bound []byte) bool {
		_, found := slices.BinarySearchFunc(m.points, bound, compareKey)
		return found
	}
	m.sizeBounds = slices.DeleteFunc(union(cfg.SizeBounds, nil), ofUser)
	return m, err
}

// Close waits for a running AddPoints, and makes later ones fail. It is called when the database was dropped.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// Bounds returns the first key of each split but the first one, in order.
func (m *Manager) Bounds(now time.Time) [][]byte { return m.at(now).bounds }

// Many reports whether the database has more than one split.
func (m *Manager) Many(now time.Time) bool { return len(m.at(now).bounds) > 0 }

// Participants returns the number of splits in which a transaction has written, at least one.
func (m *Manager) Participants(tx *txn.Tx, now time.Time) int64 {
	s := m.at(now)
	if len(s.bounds) == 0 {
		return 1
	}
	n, at := int64(0), 0
	tx.EachWrite(func(key []byte) {
		if n == 0 || !s.holds(at, key) {
			n, at = n+1, s.of(key)
		}
	})
	return max(n, 1)
}
