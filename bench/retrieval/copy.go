package retrieval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// Hints at the beginning of a query: fromRowStore makes the query read the row store, and fromCopy lets it read the
// columnar copy.
const (
	fromRowStore = "@{scan_method=no_columnar} "
	fromCopy     = "@{scan_method=columnar} "
)

// noColumnar is the end of the names of paths that read the row store although there is a columnar copy.
const noColumnar = ", row store"

// The values of Path.Copy, which say whether a path's rows may come from the columnar copy.
const (
	copyOn  = "on"
	copyOff = "off"
)

// copyTable turns the columnar copy of the table on or off. If it is on, copyTable waits until the copy has all rows.
func (b *retrieval) copyTable(ctx context.Context, r *harness.Runner) error {
	policy := "disabled"
	if b.Columnar {
		policy = "enabled"
	}
	if err := r.Target.CreateTables(ctx, fmt.Sprintf("ALTER TABLE %s SET OPTIONS (columnar_policy = '%s')", b.table.name, policy)); err != nil {
		return err
	}
	if !b.Columnar {
		return nil
	}
	r.Screen.Note("waiting for the columnar copy")
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, harness.CopyTimeout, fmt.Errorf("the columnar copy was not complete after %v", harness.CopyTimeout))
	defer cancel()
	for {
		size, complete, err := b.copySize(ctx, r.Target.Client)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if complete {
			r.Fact("columnar copy of %s: %.0f MB, complete after %.1f s", b.table.name, float64(size)/1e6, time.Since(began).Seconds())
			return nil
		}
		if err := harness.Wait(ctx, harness.Tick); err != nil {
			return context.Cause(ctx)
		}
	}
}

// copySize returns the size of the columnar copy in bytes. complete is true if the copy has all rows.
func (b *retrieval) copySize(ctx context.Context, c *spanner.Client) (bytes int64, complete bool, err error) {
	query := spanner.Statement{
		SQL:    "SELECT USED_BYTES, CHUNKS > 0 AND MISSING_CHUNKS = 0 AND CHANGED_ROWS = 0 FROM SPANNER_SYS.COLUMNAR_POLICIES WHERE TABLE_NAME = @table AND INDEX_NAME IS NULL",
		Params: map[string]any{"table": b.table.name},
	}
	err = c.Single().Query(ctx, query).Do(func(r *spanner.Row) error { return r.Columns(&bytes, &complete) })
	return bytes, complete, err
}

// copyUse returns copyOn if the rows that the target returns may come from a columnar copy, else copyOff.
func (b *retrieval) copyUse() string {
	if b.Columnar {
		return copyOn
	}
	return copyOff
}

// fromTarget sets Copy on the paths that read from the target. If there is a columnar copy, it also adds paths that
// read the row store.
func (b *retrieval) fromTarget(paths []harness.Path) []harness.Path {
	for i, p := range paths {
		if p.Server == nil && !p.Local {
			paths[i].Copy = b.copyUse()
		}
	}
	if !b.Columnar {
		return paths
	}
	query := fromRowStore + b.table.query()
	return append(paths,
		harness.Path{Name: officialSQL + noColumnar, Method: aggregateMethod, Operation: b.bySQL(query), Codec: rowCodec, Copy: copyOff},
		harness.Path{Name: rawSQL + noColumnar, Method: aggregateMethod, Operation: b.byRaw(b.raw, b.raw.sql(query)), Codec: rowCodec, Copy: copyOff},
		harness.Path{Name: viaFlight + noColumnar, Method: "DoGet", Operation: b.flightFrom(b.flightSQL, query, 1), Codec: flightCodec, Copy: copyOff},
	)
}
