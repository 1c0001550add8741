package database

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// partitionedDMLBytes is how much of a table one transaction of a partitioned DML goes over.
const partitionedDMLBytes = 1 << 20

// maxPartitionedDML bounds the first cut of a table; a part that is still too large for a transaction is cut again.
const maxPartitionedDML = 10_000

// retryPartitioned is how long a client should wait before it runs a statement again that lost its table: the next one is there.
const retryPartitioned = time.Millisecond

// Changed is what a partitioned DML has done, and what that took.
type Changed struct {
	Rows                      int64 // a lower bound where a part had to be run again
	RowsScanned, BytesWritten int64
	MemoryPeak                int64 // of the part that took most
	Commits                   int64
}

func (c *Changed) add(o Changed) {
	c.Rows += o.Rows
	c.RowsScanned += o.RowsScanned
	c.BytesWritten += o.BytesWritten
	c.MemoryPeak = max(c.MemoryPeak, o.MemoryPeak)
	c.Commits += o.Commits
}

// PartitionedDML runs a statement over the parts of its table, each in a
// transaction of its own. session is shown with its progress; tracker records where it goes.
func (d *Database) PartitionedDML(ctx context.Context, s *Statement, params []value.Value, session string, tracker *split.Tracker) (total Changed, err error) {
	scan := s.Plan.Driving()
	if scan == nil {
		return d.dmlPart(ctx, s, params, nil, tracker)
	}
	layout := table.TableLayout(scan.Table)
	if scan.Index != nil {
		layout = table.IndexLayout(scan.Index)
	}
	space, _ := layout.Space()
	parts, err := d.splits.Partition(space, mvcc.Latest, partitionedDMLBytes, maxPartitionedDML)
	if err != nil {
		return total, err
	}
	progress := d.Live().StartPartitioned(s.Text.SQL, s.Text.Fingerprint, session, int64(len(parts)), d.registry.cfg.Clock())
	defer progress.Finish()
	for len(parts) > 0 {
		part := parts[0]
		changed, err := d.dmlPart(ctx, s, params, &part, tracker)
		if err != nil {
			if errors.Is(err, errGone) {
				return total, usererror.SchemaChanged(retryPartitioned)
			}
			halves := d.halve(part, err)
			if halves == nil {
				return total, err
			}
			progress.Split(int64(len(halves)-1), d.registry.cfg.Clock())
			parts = append(halves, parts[1:]...)
			continue
		}
		total.add(changed)
		progress.Advance(changed.Rows, d.registry.cfg.Clock())
		parts = parts[1:]
	}
	return total, nil
}

// halve cuts a part in two if it was too large for one transaction; nil if that was not the reason, or it cannot be cut.
func (d *Database) halve(part table.Span, why error) []table.Span {
	if usererror.CodeOf(why) != codes.InvalidArgument {
		return nil
	}
	return d.splits.Halve(part)
}

// dmlPart runs the statement over one part, in a transaction of its own.
func (d *Database) dmlPart(ctx context.Context, s *Statement, params []value.Value, part *table.Span, tracker *split.Tracker) (changed Changed, err error) {
	err = d.retry(ctx, func(w table.Writer) error {
		s, err := d.renew(ctx, s)
		if err != nil {
			return err
		}
		rows, err := s.Run(ctx, Run{Writer: tracker.Writer(w), Params: params, Restrict: part}, d.registry.cfg.Clock().UTC().Round(time.Microsecond))
		if err != nil {
			return err
		}
		changed, err = drain(rows)
		return err
	})
	return changed, err
}

// errGone says that what a partitioned DML goes over is no longer there.
var errGone = errors.New("partitioned DML has lost its table")

// renew is the statement for the newest schema version: the statement may take longer than a version lives. What it
// goes over must have remained the same.
func (d *Database) renew(ctx context.Context, s *Statement) (*Statement, error) {
	if s.version == d.newest() {
		return s, nil
	}
	now, err := d.Prepare(ctx, d.Catalog(), s.Text.SQL, s.types, s.opts)
	if err != nil {
		return nil, err
	}
	if err := now.Plan.PartitionedDML(); err != nil {
		return nil, err
	}
	if drivingID(now.Plan) != drivingID(s.Plan) {
		return nil, errGone
	}
	return now, nil
}

// drivingID numbers what a plan goes over; 0 if that is nothing.
func drivingID(p *plan.Plan) schema.TableID {
	switch scan := p.Driving(); {
	case scan == nil:
		return 0
	case scan.Index != nil:
		return scan.Index.ID
	default:
		return scan.Table.ID
	}
}

// drain reads a result to its end and returns what the statement changed.
func drain(rows exec.Rows) (Changed, error) {
	for {
		more, err := rows.Next()
		if err != nil {
			rows.Close()
			return Changed{}, err
		}
		if !more {
			ran := rows.Stats()
			return Changed{Rows: rows.RowCount(), RowsScanned: ran.RowsScanned, BytesWritten: ran.BytesWritten, MemoryPeak: ran.MemoryPeak, Commits: 1}, rows.Close()
		}
	}
}
