package database

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// maxSplitPoints is how many a database can have. The service's quota is 50 for each node of the instance
// (https://cloud.google.com/spanner/quotas#split-point-limits); nodes limit nothing here, so it is that of 200.
const maxSplitPoints = 10_000

// SplitPoint is a key at which a user wants a split to begin.
type SplitPoint struct {
	Table *schema.Table
	Index *schema.Index // nil for the table itself
	Key   []value.Value // all of it: of the table, or of the index as declared
	// TableKey is the primary key that follows an index key: of the entries with that key, the point is before this one. Nil for before all.
	TableKey  []value.Value
	Initiator string
	Expires   time.Time // if that is past, the point goes
}

// splitPoints are those of a database, in memory as they are stored, with what is made of them.
type splitPoints struct {
	mu   sync.Mutex // held while they change, the store included
	list []*splitPointRecord
	cuts [][]byte // of what has grown large; see cutLarge

	splits atomic.Pointer[splits] // nil: to be found
}

// splitPointRecord is a split point as stored, behind its key. Names may change, numbers do not; a table or index that
// is gone takes its points along. (An index that is filled anew, for other stored columns, is another.)
type splitPointRecord struct {
	Object    schema.TableID // the table or index
	TableKey  bool           // of an index: the key holds that of the table
	Initiator string
	Expires   time.Time

	key []byte
}

func (r *splitPointRecord) live(now time.Time) bool { return r.Expires.After(now) }

// compareSplitPoint orders points by key.
func compareSplitPoint(r *splitPointRecord, key []byte) int { return bytes.Compare(r.key, key) }

// splitPointPrefix begins the metadata names of a space's split points.
func splitPointPrefix(s mvcc.Space) string {
	return metaSplitPoint + strconv.FormatUint(uint64(s), 10) + "/"
}

func (d *Database) splitPointKey(r *splitPointRecord) []byte {
	return metaKey(splitPointPrefix(d.space), string(r.key))
}

func (d *Database) loadSplitPoints() error {
	prefix := splitPointPrefix(d.space)
	return d.registry.eachMeta(prefix, func(name string, data []byte) error {
		r := &splitPointRecord{key: []byte(name[len(prefix):])}
		if err := json.Unmarshal(data, r); err != nil {
			return fmt.Errorf("read split point: %w", err)
		}
		d.points.list = append(d.points.list, r)
		return nil
	})
}

// AddSplitPoints adds points, durably, or none of them. One that is there already gets the new expiry.
func (d *Database) AddSplitPoints(points []SplitPoint) error {
	records, err := splitPointRecords(points)
	if err != nil {
		return err
	}
	d.points.mu.Lock()
	defer d.points.mu.Unlock()
	if d.Dropped() {
		return usererror.DatabaseNotFound(d.name)
	}
	b := d.registry.store.NewBatch()
	defer b.Close()
	list, err := d.forgetSplitPoints(b)
	if err != nil {
		return err
	}
	now := d.registry.cfg.Clock()
	for _, r := range records {
		if list, err = d.putSplitPoint(b, list, r, now); err != nil {
			return err
		}
	}
	if len(list) > maxSplitPoints {
		return usererror.SplitPointsExhausted(maxSplitPoints)
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("store split points: %w", err)
	}
	d.points.list = list
	d.points.splits.Store(nil)
	return nil
}

// splitPointRecords are what is stored of points, in order of their keys.
func splitPointRecords(points []SplitPoint) ([]*splitPointRecord, error) {
	var list []*splitPointRecord
	for _, p := range points {
		r, err := p.record()
		if err != nil {
			return nil, err
		}
		at, found := slices.BinarySearchFunc(list, r.key, compareSplitPoint)
		if found {
			return nil, usererror.SplitPointTwice(p.text())
		}
		list = slices.Insert(list, at, r)
	}
	return list, nil
}

// record is the point as it is stored; its key is that of the row or entry, or the bound in front of all entries with an index key.
func (p *SplitPoint) record() (*splitPointRecord, error) {
	r := &splitPointRecord{Object: p.Table.ID, Initiator: p.Initiator, Expires: p.Expires}
	layout, key := table.TableLayout(p.Table), p.Key
	if p.Index != nil {
		r.Object, r.TableKey = p.Index.ID, p.TableKey != nil
		layout = table.IndexLayout(p.Index)
		suffix, err := p.suffix()
		if err != nil {
			return nil, err
		}
		key = append(slices.Clone(key), suffix...)
	}
	spans, err := layout.Spans(table.KeySet{Keys: [][]value.Value{key}})
	if err != nil {
		return nil, err
	}
	if r.key = spans[0].Start; len(r.key) > table.MaxKeyBytes {
		return nil, usererror.KeyTooLong(layout.Name(), len(r.key), table.MaxKeyBytes)
	}
	return r, nil
}

// suffix is what the table's key adds to that of the index. Columns that are in both must have one value.
func (p *SplitPoint) suffix() (suffix []value.Value, err error) {
	for i, v := range p.TableKey {
		c := p.Table.Key[i].Column
		at := slices.IndexFunc(p.Index.Key, func(k schema.KeyPart) bool { return k.Column == c })
		if at >= 0 && value.Compare(p.Key[at], v, c.Type) != 0 {
			return nil, usererror.InvalidSplitPoint(p.Index.FullName(), "its index key and its table key differing in column "+c.Name)
		}
		if at < 0 {
			suffix = append(suffix, v)
		}
	}
	return suffix, nil
}

func (p *SplitPoint) text() string {
	if p.Index == nil {
		return stats.KeyText(p.Table.FullName(), p.Key, false)
	}
	return stats.IndexKeyText(p.Index.FullName(), p.Table.FullName(), p.Key, p.TableKey, len(p.Table.Key))
}

// forgetSplitPoints deletes in b what has expired and what is of tables and indexes that are gone, and returns the others.
func (d *Database) forgetSplitPoints(b kv.Batch) (rest []*splitPointRecord, err error) {
	now, objects := d.registry.cfg.Clock(), d.newest().objects()
	for _, r := range d.points.list {
		if objects[r.Object] != nil && r.live(now) {
			rest = append(rest, r)
		} else if err := b.Delete(d.splitPointKey(r)); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// putSplitPoint adds a point to b and list, in place of the one with its key; one that has expired goes.
func (d *Database) putSplitPoint(b kv.Batch, list []*splitPointRecord, r *splitPointRecord, now time.Time) ([]*splitPointRecord, error) {
	at, found := slices.BinarySearchFunc(list, r.key, compareSplitPoint)
	switch {
	case r.live(now) && found:
		list[at] = r
	case r.live(now):
		list = slices.Insert(list, at, r)
	case found:
		return slices.Delete(list, at, at+1), b.Delete(d.splitPointKey(r))
	default:
		return list, nil
	}
	return list, putRecord(b, d.splitPointKey(r), r)
}

// sweepSplitPoints forgets what nobody sees any more.
func (d *Database) sweepSplitPoints() error {
	d.points.mu.Lock()
	defer d.points.mu.Unlock()
	if d.Dropped() {
		return nil
	}
	b := d.registry.store.NewBatch()
	defer b.Close()
	rest, err := d.forgetSplitPoints(b)
	if err != nil || len(rest) == len(d.points.list) {
		return err
	}
	if err := b.CommitNoSync(); err != nil {
		return fmt.Errorf("forget split points: %w", err)
	}
	d.points.list = rest
	return nil
}

// userSplitPoints are the points as USER_SPLIT_POINTS shows them, in order of their keys.
func (d *Database) userSplitPoints() []stats.SplitPoint {
	now, objects := d.registry.cfg.Clock(), d.newest().objects()
	var list []stats.SplitPoint
	for _, r := range d.points.current() {
		if l := objects[r.Object]; l != nil && r.live(now) {
			list = append(list, r.shown(l))
		}
	}
	return list
}

func (p *splitPoints) current() []*splitPointRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list
}

// shown is the point as users see it; l lays out what it is of.
func (r *splitPointRecord) shown(l *table.Layout) stats.SplitPoint {
	p := SplitPoint{Table: l.Table, Index: l.Index}
	p.Key, _ = l.DecodeStart(r.key)
	if x := l.Index; x != nil {
		if r.TableKey {
			p.TableKey = tableKeyOf(x, p.Key)
		}
		p.Key = p.Key[:len(x.Key)]
	}
	shown := stats.SplitPoint{Table: l.Table.FullName(), Initiator: r.Initiator, Key: p.text(), Expires: r.Expires}
	if l.Index != nil {
		shown.Index = l.Index.FullName()
	}
	return shown
}

// tableKeyOf is the primary key in the stored key of an index.
func tableKeyOf(x *schema.Index, stored []value.Value) []value.Value {
	parts := slices.Concat(x.Key, x.Suffix)
	key := make([]value.Value, len(x.Table.Key))
	for i, k := range x.Table.Key {
		key[i] = stored[slices.IndexFunc(parts, func(p schema.KeyPart) bool { return p.Column == k.Column })]
	}
	return key
}
