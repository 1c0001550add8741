package columnar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/randomtest"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestModel checks that copies show the same rows as their tables and indexes, at random timestamps and for random keys
// and columns. It writes and deletes random rows of a table and of an interleaved table, which have indexes. It writes,
// renews and drops chunks of copies of all of these, collects old versions, flushes and restarts. Some Readers stay
// open all the time. A failed run can be repeated with its seed.
func TestModel(t *testing.T) {
	randomtest.Run(t, 25, 5, 300, func(seed uint64) (step, end func()) {
		m := newModel(t, seed)
		return m.step, func() {
			m.endReads()
			m.close()
		}
	})
}

const modelDDL = `
	CREATE TABLE Top (
		A INT64, B STRING(MAX), Flag BOOL, Num NUMERIC, F FLOAT64, G FLOAT32, Day DATE, Stamp TIMESTAMP, Raw BYTES(MAX), Doc JSON, U UUID,
		List ARRAY<STRING(MAX)>, Stamps ARRAY<TIMESTAMP>, Both STRING(MAX) AS (B || B)) PRIMARY KEY (A DESC, B);
	CREATE TABLE Child (A INT64, B STRING(MAX), C TIMESTAMP, N INT64) PRIMARY KEY (A DESC, B, C DESC), INTERLEAVE IN Top;
	CREATE TABLE Beside (A INT64, B STRING(MAX), D INT64) PRIMARY KEY (A DESC, B, D), INTERLEAVE IN Top;
	CREATE INDEX ByDay ON Top (Day DESC, Flag) STORING (Num, Stamp);
	CREATE NULL_FILTERED INDEX ByN ON Child (A DESC, B, N), INTERLEAVE IN Top`

type model struct {
	*harness
	t       *testing.T
	rng     *rand.Rand
	targets []target
	horizon mvcc.Timestamp
	reads   []*openRead
}

// target is a table or an index.
type target struct {
	t *schema.Table
	x *schema.Index
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 11)), harness: newHarness(t, vfs.NewMem(), modelDDL)}
	parent, child := m.catalog.Table("Top"), m.catalog.Table("Child")
	m.targets = []target{{parent, nil}, {child, nil}, {m.catalog.Table("Beside"), nil}, {parent, parent.Index("ByDay")}, {child, child.Index("ByN")}}
	return m
}

func (m *model) step() {
	randomtest.Take(m.rng,
		randomtest.Share(35, m.write), randomtest.Share(20, m.read), randomtest.Share(5, m.beginRead), randomtest.Share(10, m.goOn), randomtest.Share(15, m.writeChunk), randomtest.Share(4, m.renew),
		randomtest.Share(3, m.collect), randomtest.Share(2, m.flush), randomtest.Share(2, m.compact), randomtest.Share(1, m.drop), randomtest.Share(3, m.restart),
	)
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// value returns a random value of a type: NULL, a common value, or one that Arrow's type cannot hold.
func (m *model) value(t *value.Type) value.Value {
	n := m.rng.IntN(5)
	if n == 4 {
		return value.Null(t.Kind)
	}
	switch t.Kind {
	case value.Int64:
		return value.OfInt64(pick[int64](m.rng, 0, 1, -7, 1<<40))
	case value.String:
		return value.OfString(pick(m.rng, "", "a", "a\x00", "zeta"))
	case value.Bool:
		return value.OfBool(n > 1)
	case value.Numeric:
		return value.OfNumeric(pick(m.rng, value.DecimalFromInt64(int64(n)), value.MaxDecimal))
	case value.Float64:
		return value.OfFloat64(pick(m.rng, 0, -1.5, 1e300))
	case value.Float32:
		return value.OfFloat32(float32(n))
	case value.Date:
		return value.OfDate(int32(n * 400))
	case value.Timestamp:
		if m.rng.IntN(30) == 0 {
			return value.OfTimestamp(253402300799, 999_999_999) // too late for Arrow's 64-bit number of nanoseconds
		}
		return value.OfTimestamp(int64(n)*1_000_000, int32(n))
	case value.Bytes:
		return value.OfBytes([]byte{0, byte(n)})
	case value.JSON:
		return value.OfJSON(pick(m.rng, "null", `{"a":1}`))
	case value.UUID:
		return value.OfUUID([16]byte{byte(n)})
	}
	elems := []value.Value{}
	for range n {
		elems = append(elems, m.value(t.Elem))
	}
	return value.OfArray(elems)
}

func (m *model) row(columns []*schema.Column) (row []value.Value) {
	for _, c := range columns {
		row = append(row, m.value(c.Type))
	}
	return row
}

func (m *model) write() {
	t := pick(m.rng, m.targets[:3]...).t
	if m.rng.IntN(4) == 0 {
		m.commit(table.Mutation{Op: table.Delete, Table: t, Keys: m.keySet(table.TableLayout(t))})
		return
	}
	mut := table.Mutation{Op: pick(m.rng, table.InsertOrUpdate, table.Replace), Table: t}
	for _, c := range t.Columns {
		if c.Generated == nil {
			mut.Columns = append(mut.Columns, c)
		}
	}
	rowKeys := map[string]bool{}
	for range 1 + m.rng.IntN(12) {
		row := m.row(mut.Columns)
		// A commit must not write a key twice.
		if key := fmt.Sprint(textOfAll(mut.Columns, row)[:len(t.Key)]); !rowKeys[key] {
			rowKeys[key] = true
			mut.Rows = append(mut.Rows, row)
		}
	}
	if !m.commit(mut) {
		m.t.Error("a commit was refused")
	}
}

func textOfAll(columns []*schema.Column, row []value.Value) (list []string) {
	for i, v := range row {
		list = append(list, string(v.AppendWire(nil, columns[i].Type)))
	}
	return list
}

// keySet returns a random key set: all keys, single keys, or ranges whose bounds have few or all parts of the key.
func (m *model) keySet(l *table.Layout) (ks table.KeySet) {
	if m.rng.IntN(3) == 0 {
		ks.All = true
		return ks
	}
	parts := func(n int) (key []value.Value) {
		for _, p := range l.Key[:n] {
			key = append(key, m.value(p.Column.Type))
		}
		return key
	}
	declared := len(l.KeySetColumns())
	for range m.rng.IntN(4) {
		ks.Keys = append(ks.Keys, parts(declared))
	}
	for range m.rng.IntN(3) {
		ks.Ranges = append(ks.Ranges, table.KeyRange{
			Start: parts(m.rng.IntN(declared + 1)), End: parts(m.rng.IntN(declared + 1)), StartOpen: m.rng.IntN(2) == 0, EndOpen: m.rng.IntN(2) == 0,
		})
	}
	return ks
}

// randomRead returns a copy and a read of random keys and columns, at a timestamp that may be too old.
func (m *model) randomRead() (*Copy, Read) {
	to := pick(m.rng, m.targets...)
	src := m.source(to.t, to.x, m.now)
	columns := slices.Clone(src.Columns)
	m.rng.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	p, err := table.NewProjection(to.t, to.x, columns[:m.rng.IntN(len(columns)+1)])
	if err != nil {
		m.t.Fatal(err)
	}
	read := Read{Projection: p, At: m.timestamp()}
	if read.Spans, err = p.Spans(m.keySet(p.Layout)); err != nil {
		m.t.Fatal(err)
	}
	return m.copies.Of(p.ID()), read
}

func (m *model) timestamp() mvcc.Timestamp {
	return m.now - mvcc.Timestamp(pick(m.rng, 0, 0, 0, m.rng.IntN(6), m.rng.IntN(int(m.now-999))))
}

func (m *model) read() {
	c, read := m.randomRead()
	want, wantErr := m.fromRows(read)
	got, err := m.fromCopy(c, read, nil)
	m.compare(read, got, err, want, wantErr)
}

func (m *model) compare(read Read, got []string, err error, want []string, wantErr error) {
	if read.At < m.horizon && len(read.Spans) > 0 {
		if !errors.Is(err, mvcc.ErrCollected) || !errors.Is(wantErr, mvcc.ErrCollected) {
			m.t.Errorf("read of %s at %d, horizon %d: %v, from rows %v", read.Name(), read.At, m.horizon, err, wantErr)
		}
		return
	}
	if err != nil || wantErr != nil || !slices.Equal(got, want) {
		m.t.Errorf("read of %d columns of %s at %d: copy %q %v, rows %q %v", len(read.Columns), read.Name(), read.At, got, err, want, wantErr)
	}
}

// openRead is a Reader that stays open for a while. From time to time the test reads the next rows from it.
type openRead struct {
	read   Read
	reader *Reader
	want   []string
	got    []string
}

func (m *model) beginRead() {
	c, read := m.randomRead()
	want, err := m.fromRows(read)
	if err != nil {
		return
	}
	m.reads = append(m.reads, &openRead{read: read, want: want, reader: c.Open(context.Background(), m.view(read.At), read)})
}

// goOn calls Next once for each open Reader. Sometimes it also calls Release.
func (m *model) goOn() {
	m.reads = slices.DeleteFunc(m.reads, func(o *openRead) bool {
		n, err := o.reader.Next()
		if n > 0 {
			var rows []string
			rows, err = rowsOf(o.read, o.reader, n)
			o.got = append(o.got, rows...)
		}
		if m.rng.IntN(2) == 0 {
			o.reader.Release()
		}
		if n > 0 && err == nil {
			return false
		}
		switch {
		case errors.Is(err, mvcc.ErrCollected) && o.read.At < m.horizon: // the versions that it needs were collected
		case err != nil || !slices.Equal(o.got, o.want):
			m.t.Errorf("long read of %s at %d: %q, %v, want %q", o.read.Name(), o.read.At, o.got, err, o.want)
		}
		if err := o.reader.Close(); err != nil {
			m.t.Error(err)
		}
		return true
	})
}

func (m *model) endReads() {
	for len(m.reads) > 0 {
		m.goOn()
	}
}

// writeChunk writes a chunk. Its span is a range without a chunk, or the range of one or two chunks, or any range.
func (m *model) writeChunk() {
	to := pick(m.rng, m.targets...)
	src := m.source(to.t, to.x, max(m.now-mvcc.Timestamp(m.rng.IntN(3)), m.horizon))
	c := m.copies.Make(src.ID())
	c.limits = limits{maxRows: 1 + m.rng.IntN(20), maxBytes: int64(50 + m.rng.IntN(3000)), minSlice: 1 + m.rng.IntN(8), maxBatch: 1 + m.rng.IntN(10)}
	span, isMissing := missing(c, src.Layout)
	chunks := c.Chunks()
	switch {
	case isMissing && m.rng.IntN(2) == 0 || len(chunks) == 0:
	case m.rng.IntN(4) == 0:
		spans, err := src.Spans(table.KeySet{Ranges: []table.KeyRange{{Start: []value.Value{m.value(src.Key[0].Column.Type)}}}})
		if err != nil || len(spans) == 0 {
			return
		}
		span = spans[0]
	default:
		from := m.rng.IntN(len(chunks))
		span = table.Span{Start: chunks[from].Span.Start, End: chunks[min(from+m.rng.IntN(2), len(chunks)-1)].Span.End}
	}
	for range 1 + m.rng.IntN(4) {
		made, err := c.Write(context.Background(), src, span)
		if err != nil {
			m.t.Errorf("write %s: %v", src.Name(), err)
			return
		}
		if span.Start = made.Span.End; string(span.Start) >= string(span.End) {
			break
		}
	}
	m.checkChunks(c)
}

// checkChunks checks that the ranges of the chunks are disjoint and in order.
func (m *model) checkChunks(c *Copy) {
	end := ""
	for _, ch := range c.Chunks() {
		if string(ch.Span.Start) < end || string(ch.Span.Start) >= string(ch.Span.End) {
			m.t.Errorf("chunk %+v begins before %x", ch, end)
		}
		end = string(ch.Span.End)
	}
}

func (m *model) renew() {
	for _, c := range m.copies.All() {
		to := m.targets[slices.IndexFunc(m.targets, func(to target) bool { return m.source(to.t, to.x, 0).ID() == c.ID() })]
		src := m.source(to.t, to.x, m.now)
		before := m.timestamp()
		done, err := c.Renew(context.Background(), src, before)
		if err != nil {
			m.t.Error(err)
		}
		old := 0
		for _, ch := range c.Chunks() {
			if ch.At < before {
				old++
			}
		}
		if old != len(done.Changed) {
			m.t.Errorf("%d chunks are old after Renew, which says %d", old, len(done.Changed))
		}
	}
}

func (m *model) collect() {
	to := m.timestamp()
	if _, err := m.rows.Collect(context.Background(), to, nil); err != nil {
		m.t.Error(err)
	}
	m.horizon = max(m.horizon, to)
}

func (m *model) flush() {
	if err := m.store.Flush(context.Background(), 0); err != nil {
		m.t.Error(err)
	}
}

func (m *model) compact() { m.rows.FreeSpace(nil, nil) }

func (m *model) drop() {
	if err := m.copies.Drop(pick(m.rng, m.targets...).t.ID); err != nil {
		m.t.Error(err)
	}
}

// restart ends all reads, closes the store and opens it again.
func (m *model) restart() {
	m.endReads()
	m.close()
	m.open()
	for _, c := range m.copies.All() {
		m.checkChunks(c)
	}
}
