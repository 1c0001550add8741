package split

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// maxPoints is the largest number of user split points of a database. Cloud Spanner's quota is 50 for each node of the
// instance (https://cloud.google.com/spanner/quotas#split-point-limits). Crowfoot does not limit by nodes, so every
// database has the quota of 200 nodes.
const maxPoints = 10_000

// Point is a key at which a user wants a split to begin.
type Point struct {
	Table *schema.Table
	Index *schema.Index // nil for the table itself
	Key   []value.Value // values of all primary key columns of the table, or of all columns that the index declares as its key
	// TableKey is the primary key of a row, for a point in an index: the point then lies before the index entry of that
	// row. If TableKey is nil, the point lies before all entries with the index key.
	TableKey  []value.Value
	Initiator string
	Expires   time.Time // when the point is removed
}

// record is a user split point as stored. Its key is the last part of the record's name. The record holds the ID of the
// table or index, not its name, since names may change. The points of a table or index are deleted when that table or
// index is dropped. They are also deleted when an index is rebuilt to store other columns, because the rebuilt index
// has another ID.
type record struct {
	Object    schema.TableID // ID of the table or index
	TableKey  bool           // the key is the complete key of an index entry, with the primary key of its row
	Initiator string
	Expires   time.Time

	key []byte
}

func (r *record) live(now time.Time) bool { return r.Expires.After(now) }

// compareKey orders records by key.
func compareKey(r *record, key []byte) int { return bytes.Compare(r.key, key) }

// AddPoints stores all points durably, or none of them. A point that exists already gets the new expiration time.
func (m *Manager) AddPoints(points []Point) error {
	records, err := recordsOf(points)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return usererror.DatabaseNotFound(m.cfg.Database)
	}
	b := m.cfg.Store.NewBatch()
	defer b.Close()
	list, err := m.deleteDead(b)
	if err != nil {
		return err
	}
	now := m.cfg.Clock()
	for _, r := range records {
		if list, err = m.put(b, list, r, now); err != nil {
			return err
		}
	}
	if len(list) > maxPoints {
		return usererror.SplitPointsExhausted(maxPoints)
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("store split points: %w", err)
	}
	m.points = list
	m.current.Store(nil)
	return nil
}

// recordsOf returns a record for each point, in order of their keys. It fails if two points have the same key.
func recordsOf(points []Point) ([]*record, error) {
	var list []*record
	for _, p := range points {
		r, err := p.record()
		if err != nil {
			return nil, err
		}
		at, found := slices.BinarySearchFunc(list, r.key, compareKey)
		if found {
			return nil, usererror.SplitPointTwice(p.text())
		}
		list = slices.Insert(list, at, r)
	}
	return list, nil
}

// record returns the point in its stored form. The record's key is the stored key of the row or index entry. For an
// index point without TableKey, it is a bound before all entries with the index key.
func (p *Point) record() (*record, error) {
	r := &record{Object: p.Table.ID, Initiator: p.Initiator, Expires: p.Expires}
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

// suffix returns the values of TableKey whose columns are not in the index key. It fails if Key and TableKey have
// different values for a column that is in both.
func (p *Point) suffix() (suffix []value.Value, err error) {
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

func (p *Point) text() string {
	if p.Index == nil {
		return stats.KeyText(p.Table.FullName(), p.Key, false)
	}
	return stats.IndexKeyText(p.Index.FullName(), p.Table.FullName(), p.Key, p.TableKey, len(p.Table.Key))
}

func (m *Manager) metaKey(r *record) []byte {
	return meta.Key(meta.OfSpace(meta.SplitPoint, m.cfg.Space), string(r.key))
}

// deleteDead adds to b the deletion of the points that have expired or whose table or index no longer exists. It
// returns the points that stay.
func (m *Manager) deleteDead(b kv.Batch) (rest []*record, err error) {
	now, catalog := m.cfg.Clock(), m.cfg.Catalog()
	for _, r := range m.points {
		if table.LayoutOf(catalog, r.Object) != nil && r.live(now) {
			rest = append(rest, r)
		} else if err := b.Delete(m.metaKey(r)); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// put adds a point to b and list, in place of an existing point with the same key. If the new point has expired
// already, put deletes the existing one instead.
func (m *Manager) put(b kv.Batch, list []*record, r *record, now time.Time) ([]*record, error) {
	at, found := slices.BinarySearchFunc(list, r.key, compareKey)
	switch {
	case r.live(now) && found:
		list[at] = r
	case r.live(now):
		list = slices.Insert(list, at, r)
	case found:
		return slices.Delete(list, at, at+1), b.Delete(m.metaKey(r))
	default:
		return list, nil
	}
	return list, meta.Put(b, m.metaKey(r), r)
}

// SweepPoints deletes stored points that have expired or whose table or index no longer exists. All other methods
// ignore such points even before SweepPoints deletes them.
func (m *Manager) SweepPoints() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	b := m.cfg.Store.NewBatch()
	defer b.Close()
	b.UseReserve()
	rest, err := m.deleteDead(b)
	if err != nil || len(rest) == len(m.points) {
		return err
	}
	if err := b.CommitNoSync(); err != nil {
		return fmt.Errorf("delete split points: %w", err)
	}
	m.points = rest
	return nil
}

// UserPoints returns the points as USER_SPLIT_POINTS shows them, in order of their keys.
func (m *Manager) UserPoints() []stats.SplitPoint {
	m.mu.Lock()
	points := m.points
	m.mu.Unlock()
	now, catalog := m.cfg.Clock(), m.cfg.Catalog()
	var list []stats.SplitPoint
	for _, r := range points {
		if l := table.LayoutOf(catalog, r.Object); l != nil && r.live(now) {
			list = append(list, r.shown(l))
		}
	}
	return list
}

// shown returns the point as USER_SPLIT_POINTS shows it. l is the layout of its table or index.
func (r *record) shown(l *table.Layout) stats.SplitPoint {
	p := Point{Table: l.Table, Index: l.Index}
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

// tableKeyOf returns the table's primary key. stored is the key of an index entry, which contains the primary key.
func tableKeyOf(x *schema.Index, stored []value.Value) []value.Value {
	parts := slices.Concat(x.Key, x.Suffix)
	key := make([]value.Value, len(x.Table.Key))
	for i, k := range x.Table.Key {
		key[i] = stored[slices.IndexFunc(parts, func(p schema.KeyPart) bool { return p.Column == k.Column })]
	}
	return key
}
