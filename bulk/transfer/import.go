package transfer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// Mode says what becomes of a row whose key is in the table.
type Mode string

// The modes are Spanner's kinds of mutations.
const (
	InsertOrUpdate Mode = "insert-or-update" // it gets the columns of the source
	Insert         Mode = "insert"           // the row of the source is a bad row
	Replace        Mode = "replace"          // it is deleted before
)

// ImportOptions say what is imported.
type ImportOptions struct {
	Client   *spanner.Client
	Table    *bulk.TableInfo
	Source   bulk.Source // its columns are found in the table by their names
	Mode     Mode        // "" is InsertOrUpdate
	Parallel int         // how many segments are read, and twice as many commits under way, at once
	Rejects  *Rejects    // nil: the first bad row ends the import
	// State remembers what is in, so that an import that was interrupted goes on; nil remembers nothing. The caller removes it when all is done: an import
	// with the state of a complete one writes nothing. StateOf is what the import is of, in JSON: an import that goes on must be of the same.
	State    *ImportState
	StateOf  any
	Progress *Progress // nil if it is not shown
	// Flight, if not nil, is a connection to the same server. If that is Crowfoot, and takes the source's columns as they are, rows are written over Arrow
	// Flight SQL, in a fraction of the CPU time; those of a commit that it refuses are written as to any server.
	Flight grpc.ClientConnInterface
}

// ImportResult is what an import did.
type ImportResult struct {
	Begun   bool  // rows were to be sent: the options fit the table, and the state is of this import
	Rows    int64 // that were written by this run
	Resumed int64 // that a run before had written or rejected
	Flight  bool  // rows were written over Arrow Flight SQL
}

// segmentsOfImport is how many segments an import cuts its source into. It does not depend on the number of readers, so that an import that was
// interrupted can go on with another number of them.
const segmentsOfImport = 64

// Import writes all rows of a source into a table. When it returns nil each row is in the table or among the rejected; otherwise State tells what is in.
func Import(ctx context.Context, o ImportOptions) (result ImportResult, err error) {
	schema := o.Source.Schema()
	names := make([]string, schema.NumFields())
	for i, f := range schema.Fields() {
		names[i] = f.Name
	}
	columns, err := o.Table.Select(names)
	if err != nil {
		return result, err
	}
	for _, c := range columns {
		if c.Generated {
			return result, fmt.Errorf("column %s of table %s is generated: the database computes it, and takes no values; leave it out", c.Name, o.Table.Name)
		}
	}
	segments, err := o.Source.Segments(ctx, segmentsOfImport)
	if err != nil {
		return result, err
	}
	i := &importer{ImportOptions: o, schema: schema, columns: columns, states: make([]segmentState, len(segments))}
	if i.Rejects == nil {
		i.Rejects = &Rejects{}
	}
	if i.loader, err = newColumnLoader(ctx, i); err != nil {
		return result, err
	}
	result.Flight = i.loader != nil
	if o.State != nil {
		i.journal = o.State.journal
		i.journal.before = i.Rejects.sync
		if i.states, err = o.State.begin(o.StateOf, len(segments)); err != nil {
			return result, err
		}
	}
	result.Begun = true
	err = i.run(ctx, segments)
	if i.journal != nil {
		err = errors.Join(err, i.journal.flush())
	}
	result.Rows = i.written.Load()
	for _, s := range i.states {
		result.Resumed += s.rows
	}
	return result, err
}

// importer is an import under way.
type importer struct {
	ImportOptions
	schema  *arrow.Schema
	columns []bulk.ColumnInfo
	loader  *columnLoader // nil if rows are written as mutations
	journal *journal
	states  []segmentState // by the runs before
	written atomic.Int64
}

func (i *importer) run(ctx context.Context, segments []bulk.Segment) error {
	group, ctx := errgroup.WithContext(ctx)
	work := make(chan int, len(segments))
	for n, s := range segments {
		i.Progress.addTotal(s.Bytes())
		if i.states[n].complete {
			i.Progress.addDone(s.Bytes())
			continue
		}
		work <- n
	}
	close(work)
	for range max(i.Parallel, 1) {
		group.Go(func() error {
			for n := range work {
				if err := i.segment(ctx, n, segments[n]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// commitsAtOnce is how many commits of a segment are under way while it is read.
const commitsAtOnce = 2

// segment imports a segment.
func (i *importer) segment(ctx context.Context, n int, s bulk.Segment) error {
	e, err := newEncoder(i.schema, i.columns)
	if err != nil {
		return err
	}
	p := newPipeline(ctx, i, n)
	read := int64(0) // of the segment's bytes
	err = bulk.EachOf(p.ctx, s, func(batch arrow.RecordBatch, from bulk.Reader) error {
		i.Progress.addDone(from.Progress() - read)
		read = from.Progress()
		if i.loader != nil {
			return p.addColumns(batch, from.Places())
		}
		return p.add(e, batch, from.Places())
	})
	if err == nil {
		p.flush()
	}
	if wrong := p.wait(); wrong != nil {
		err = wrong // the cause why reading ended
	}
	if err != nil {
		return err
	}
	i.Progress.addDone(s.Bytes() - read)
	return i.journal.later(importStep{Segment: n, Complete: true})
}
