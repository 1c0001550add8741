package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
)

// The hints that say whether a query may read the columnar copy.
const (
	fromRowStore = "@{scan_method=no_columnar} "
	fromCopy     = "@{scan_method=columnar} "
)

// noColumnar ends the names of paths that read the row store although there is a columnar copy.
const noColumnar = ", row store"

// Whether a path's rows may come from the columnar copy.
const (
	copyOn  = "on"
	copyOff = "off"
)

// copyTable has the server keep a columnar copy of the table, and waits until it has all rows.
func (b *retrieval) copyTable(ctx context.Context, r *run) error {
	policy := "disabled"
	if b.Columnar {
		policy = "enabled"
	}
	if err := r.target.createTables(ctx, fmt.Sprintf("ALTER TABLE %s SET OPTIONS (columnar_policy = '%s')", b.table.name, policy)); err != nil {
		return err
	}
	if !b.Columnar {
		return nil
	}
	r.screen.note("waiting for the columnar copy")
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, copyLimit, fmt.Errorf("the columnar copy was not complete after %v", copyLimit))
	defer cancel()
	for {
		size, complete, err := b.copySize(ctx, r.target.client)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if complete {
			r.fact("columnar copy of %s: %.0f MB, complete after %.1f s", b.table.name, float64(size)/1e6, time.Since(began).Seconds())
			return nil
		}
		if err := wait(ctx, tick); err != nil {
			return context.Cause(ctx)
		}
	}
}

// copySize asks the server how large its copy is, and whether nothing waits to be copied.
func (b *retrieval) copySize(ctx context.Context, c *spanner.Client) (bytes int64, complete bool, err error) {
	query := spanner.Statement{
		SQL:    "SELECT USED_BYTES, CHUNKS > 0 AND MISSING_CHUNKS = 0 AND CHANGED_ROWS = 0 FROM SPANNER_SYS.COLUMNAR_POLICIES WHERE TABLE_NAME = @table AND INDEX_NAME IS NULL",
		Params: map[string]any{"table": b.table.name},
	}
	err = c.Single().Query(ctx, query).Do(func(r *spanner.Row) error { return r.Columns(&bytes, &complete) })
	return bytes, complete, err
}

// copyUse says of a path of the target whether its rows may come from a columnar copy.
func (b *retrieval) copyUse() string {
	if b.Columnar {
		return copyOn
	}
	return copyOff
}

// fromTarget marks the paths that ask the target, and with a copy adds those that read its row store.
func (b *retrieval) fromTarget(paths []path) []path {
	for i, p := range paths {
		if p.on == nil && !p.local {
			paths[i].copy = b.copyUse()
		}
	}
	if !b.Columnar {
		return paths
	}
	query := fromRowStore + b.table.query()
	return append(paths,
		path{name: officialSQL + noColumnar, method: aggregateMethod, op: b.bySQL(query), codec: rowCodec, copy: copyOff},
		path{name: rawSQL + noColumnar, method: aggregateMethod, op: b.byRaw(b.raw, b.raw.sql(query)), codec: rowCodec, copy: copyOff},
		path{name: viaFlight + noColumnar, method: "DoGet", op: b.flightFrom(b.flight, query, 1), codec: flightCodec, copy: copyOff},
	)
}
