package database

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
)

// Verification holds the functions to which Verify reports.
type Verification struct {
	// Begin is called before Verify reads the next object of a database: a table, an index, a columnar copy, or
	// "versions", which stands for the stored versions of all rows.
	Begin func(database, object string)
	// Found is called for each error in the data.
	Found func(database string, f table.Finding)
}

// Verify reads everything in a store to which nobody writes. It checks the rows of each database against its indexes,
// its constraints and the schema of the last complete schema change. It writes nothing. It calls to.Begin before it
// reads each object, and to.Found for each error in the data. It returns an error only if it cannot continue to read.
func Verify(ctx context.Context, store kv.Store, cfg Config, to Verification) error {
	r := &Registry{store: store, versions: mvcc.New(store), cfg: cfg, account: cpu.NoAccount(), instances: map[string]*Instance{}}
	return meta.Each(store, meta.Database, func(_ string, data []byte) error {
		var rec databaseRecord
		if err := json.Unmarshal(data, &rec); err != nil {
			return fmt.Errorf("read database: %w", err)
		}
		d := r.attach(rec, sequence.New(store))
		var err error
		if d.schema, err = schemachange.Open(d.schemaConfig()); err != nil {
			return fmt.Errorf("read %s: %w", rec.Name, err)
		}
		return d.verify(ctx, to)
	})
}

func (d *Database) verify(ctx context.Context, to Verification) error {
	to.Begin(d.name, "versions")
	found := func(f table.Finding) { to.Found(d.name, f) }
	if _, err := d.rows.Verify(ctx, func(err error) { found(table.Finding{Kind: table.Malformed, Object: "versions", Detail: err.Error()}) }); err != nil {
		if ctx.Err() != nil {
			return err
		}
		found(table.Finding{Kind: table.Unreadable, Object: "versions", Detail: err.Error()})
	}
	version := d.schema.Settled()
	if version == nil { // an unfinished schema change took so long that the version before it is no longer kept
		version = d.schema.Newest()
	}
	if err := d.verifyCopies(ctx, version.Catalog, to); err != nil {
		return err
	}
	v := table.Verifier{View: &storedView{rows: d.rows, at: newest}, Tables: version.Preparer.Tables(), Now: lastTime, Report: found}
	for t := range version.Catalog.Tables() {
		to.Begin(d.name, t.FullName())
		if _, err := v.Rows(ctx, t); err != nil {
			return err
		}
		for _, x := range t.Indexes {
			to.Begin(d.name, x.FullName())
			if _, err := v.Entries(ctx, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyCopies checks the columnar copies against the rows from which they were made.
func (d *Database) verifyCopies(ctx context.Context, c *schema.Catalog, to Verification) error {
	copies, err := columnar.Open(d.rows)
	if err != nil {
		to.Found(d.name, table.Finding{Kind: table.BadCopy, Object: "columnar copies", Detail: err.Error()})
		return nil
	}
	at := func(ts mvcc.Timestamp) table.View { return &storedView{rows: d.rows, at: ts} }
	for _, have := range copies.All() {
		object := fmt.Sprintf("columnar copy of table or index %d", have.ID())
		var p *table.Projection // nil if the table or index was dropped but its copy was not
		if l := table.LayoutOf(c, have.ID()); l != nil {
			object = "columnar copy of " + l.Name()
			if p, err = columnar.Columns(l.Table, l.Index); err != nil {
				return err
			}
		}
		to.Begin(d.name, object)
		err := have.Verify(ctx, p, at, func(err error) {
			to.Found(d.name, table.Finding{Kind: table.BadCopy, Object: object, Detail: err.Error()})
		})
		if err != nil {
			return err
		}
	}
	orphans, err := copies.Orphans(ctx)
	for _, text := range orphans {
		to.Found(d.name, table.Finding{Kind: table.BadCopy, Object: "columnar copies", Detail: text})
	}
	return err
}

// lastTime is the largest TIMESTAMP. Verify takes it as the current time, in place of the clock's time, when it checks
// that no commit timestamp in a row lies in the future. The data directory may be a copy from another machine. If the
// clock of this machine is behind the clock of the other machine, valid commit timestamps lie in the future here.
var lastTime = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)

// storedView reads a database to which nobody writes, at a timestamp.
type storedView struct {
	rows *mvcc.Versions
	at   mvcc.Timestamp
	buf  []byte
}

// newest is a timestamp at which a read returns the newest version of each row.
const newest mvcc.Timestamp = math.MaxInt64

// Get implements table.View.
func (v *storedView) Get(_ context.Context, key []byte, _ table.Lock) (val []byte, ok bool, err error) {
	val, _, ok, err = v.rows.Get(key, v.at, v.buf)
	if ok {
		v.buf = val
	}
	return val, ok, err
}

// Scan implements table.View.
func (v *storedView) Scan(_ context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	c, err := v.rows.Scan(span.Start, span.End, v.at, opts.Reverse)
	if err != nil {
		return nil, err
	}
	return c, nil
}
