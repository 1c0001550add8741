package columnar

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

const testSpace mvcc.Space = 7

// harness is a database without transactions, for tests. Each commit gets the next timestamp.
type harness struct {
	tb      testing.TB
	fs      vfs.FS
	store   *pebble.Store
	rows    *mvcc.Versions
	copies  *Copies
	catalog *schema.Catalog
	tables  *table.Descriptors
	now     mvcc.Timestamp
}

func newHarness(tb testing.TB, fs vfs.FS, ddl string) *harness {
	h := &harness{tb: tb, fs: fs, catalog: schema.NewCatalog(), now: 1000}
	for stmt := range strings.SplitSeq(ddl, ";") {
		if strings.TrimSpace(stmt) == "" {
			continue
		}
		next, _, err := h.catalog.Apply(stmt, concat{})
		if err != nil {
			tb.Fatal(err)
		}
		h.catalog = next
	}
	h.tables = table.NewDescriptors(h.catalog)
	h.open()
	return h
}

func (h *harness) open() {
	store, err := pebble.Open("data", h.fs)
	if err != nil {
		h.tb.Fatal(err)
	}
	h.store, h.rows = store, mvcc.New(store).In(testSpace)
	if h.copies, err = Open(h.rows); err != nil {
		h.tb.Fatal(err)
	}
}

func (h *harness) close() {
	if err := h.store.Close(); err != nil {
		h.tb.Fatal(err)
	}
}

// concat is a compiler of SQL that supports only a || b, where a and b are columns.
type concat struct{ schema.Compiler }

func (concat) CompileExpr(_ *schema.Catalog, t *schema.Table, sql string, _ *value.Type) (*schema.Expr, error) {
	names := strings.Split(sql, "||")
	e := &schema.Expr{SQL: sql}
	for _, name := range names {
		e.Uses = append(e.Uses, t.Column(strings.TrimSpace(name)))
	}
	e.Eval = func(args []value.Value) (value.Value, error) {
		all := ""
		for _, a := range args {
			if a.IsNull() {
				return value.Null(value.String), nil
			}
			all += a.AsString()
		}
		return value.OfString(all), nil
	}
	return e, nil
}

// commit applies mutations at the next timestamp. It reports whether the table has accepted them.
func (h *harness) commit(muts ...table.Mutation) bool {
	h.now++
	w := &writer1{view: view{h.rows, mvcc.Latest}, batch: h.rows.NewBatch(), at: h.now}
	defer w.batch.Close()
	if _, err := table.Apply(context.Background(), w, h.tables, muts, time.Unix(0, 0)); err != nil {
		return false
	}
	if err := w.batch.CommitNoSync(); err != nil {
		h.tb.Fatal(err)
	}
	return true
}

// view is a table.View that reads the rows of the database at a timestamp.
type view struct {
	rows *mvcc.Versions
	at   mvcc.Timestamp
}

func (v view) Get(_ context.Context, key []byte, _ table.Lock) (val []byte, ok bool, err error) {
	val, _, ok, err = v.rows.Get(key, v.at, nil)
	return val, ok, err
}

func (v view) Scan(_ context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	c, err := v.rows.Scan(span.Start, span.End, v.at, opts.Reverse)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// writer1 writes one commit.
type writer1 struct {
	view
	batch *mvcc.Batch
	at    mvcc.Timestamp
}

func (w *writer1) Put(_ context.Context, key, val []byte, _, _ []table.Pending) error {
	return w.batch.Put(key, val, w.at)
}

func (w *writer1) Delete(_ context.Context, key []byte) error { return w.batch.Delete(key, w.at) }

func (w *writer1) PutRun(ctx context.Context, r *table.Run, _ bool) ([]byte, error) {
	for i := range r.Len() {
		if err := w.Put(ctx, r.Key(i), r.Value(i), nil, nil); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (w *writer1) Capture(context.Context, *table.Change) (int, error) { return 0, nil }

func (h *harness) view(at mvcc.Timestamp) view { return view{h.rows, at} }

func (h *harness) source(t *schema.Table, x *schema.Index, at mvcc.Timestamp) Source {
	p, err := Columns(t, x)
	if err != nil {
		h.tb.Fatal(err)
	}
	return Source{Projection: p, View: h.view(at), At: at}
}

// build writes chunks until the copy covers all keys, and returns the copy.
func (h *harness) build(src Source) *Copy {
	c := h.copies.Make(src.ID())
	for {
		span, ok := missing(c, src.Layout)
		if !ok {
			return c
		}
		if _, err := c.Write(context.Background(), src, span); err != nil {
			h.tb.Fatal(err)
		}
	}
}

// missing returns the first range of the table's or index's keys that no chunk covers.
func missing(c *Copy, l *table.Layout) (span table.Span, ok bool) {
	space, _ := l.Space()
	at := space.Start
	for _, ch := range c.Chunks() {
		if bytes.Compare(at, ch.Span.Start) < 0 {
			return table.Span{Start: at, End: ch.Span.Start}, true
		}
		at = ch.Span.End
	}
	return table.Span{Start: at, End: space.End}, bytes.Compare(at, space.End) < 0
}

// fromRows reads rows from the table and returns them as text.
func (h *harness) fromRows(read Read) (rows []string, err error) {
	r := table.Read{Projection: read.Projection, Spans: read.Spans}.Open(context.Background(), h.view(read.At))
	defer r.Close()
	for {
		ok, err := r.Next()
		if !ok || err != nil {
			return rows, err
		}
		rows = append(rows, textOf(read.Projection, r.Values(nil)))
	}
}

func textOf(p *table.Projection, vals []value.Value) string {
	var b bytes.Buffer
	for i, v := range vals {
		b.Write(v.AppendWire(nil, p.Columns[i].Type))
		b.WriteByte('|')
	}
	return b.String()
}

// fromCopy reads the same rows as fromRows, but through the copy c. After each run of rows, it calls the function
// between, which may be nil.
func (h *harness) fromCopy(c *Copy, read Read, between func(*Reader)) (rows []string, err error) {
	r := c.Open(context.Background(), h.view(read.At), read)
	defer func() {
		if closed := r.Close(); err == nil {
			err = closed
		}
	}()
	for {
		n, err := r.Next()
		if n == 0 || err != nil {
			return rows, err
		}
		if between != nil {
			between(r)
		}
		run, err := rowsOf(read, r, n)
		if err != nil {
			return rows, err
		}
		rows = append(rows, run...)
	}
}

// rowsOf returns, as text, the n rows that the last call of r.Next has read.
func rowsOf(read Read, r *Reader, n int) (rows []string, err error) {
	vals := make([]value.Value, len(read.Columns))
	for row := range n {
		for i, c := range read.Columns {
			if r.Array(i).Len() != n {
				return rows, fmt.Errorf("array %d has %d values of %d", i, r.Array(i).Len(), n)
			}
			if vals[i], err = columnar.StoredValueAt(r.Array(i), row, c.Type); err != nil {
				return rows, err
			}
		}
		rows = append(rows, textOf(read.Projection, vals))
	}
	return rows, nil
}
