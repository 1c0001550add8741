package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// Mode says what an import does with a row whose key is already in the table.
type Mode string

// The modes. Each is a kind of Spanner mutation.
const (
	InsertOrUpdate Mode = "insert-or-update" // update the columns that the source has
	Insert         Mode = "insert"           // treat the source's row as a bad row
	Replace        Mode = "replace"          // delete the table's row first
)

// ImportOptions are the parameters of Import.
type ImportOptions struct {
	Client   *spanner.Client
	Table    *bulk.TableInfo
	Source   bulk.Source // the rows; the source's columns are matched with the table's columns by name
	Mode     Mode        // "" is InsertOrUpdate
	Parallel int         // how many segments are read at once; up to commitsAtOnce times as many commits run at once
	Rejects  *Rejects    // nil means that the first bad row ends the import
	// State records which rows are written, so that an interrupted import can continue; nil records nothing. The
	// caller must have called State.Begin, and Source must leave out the extents that Begin returned. The caller calls
	// State.Finish when the import is complete.
	State    *ImportState
	Progress *Progress // counts the work done; may be nil
	// Flight, if not nil, is a connection to the server of Client. If the server is Crowfoot and takes the source's
	// columns without a conversion, rows are written over Arrow Flight SQL, which needs a fraction of the CPU time. If
	// the server refuses a commit, the rows of this commit are written through the client.
	Flight grpc.ClientConnInterface
}

// ImportResult is the result of an import.
type ImportResult struct {
	Begun  bool  // whether the options fit the table, so that the import began to send rows
	Rows   int64 // rows that this run has written
	Flight bool  // true if the rows were written over Arrow Flight SQL
}

// segmentsOfImport is the number of segments that an import asks its source for.
const segmentsOfImport = 64

// Import writes all rows of a source into a table. When it returns nil, each row is in the table or among the rejected
// rows. After an error, State says which rows are written.
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
	if o.State != nil && o.State.resends() {
		if err := o.checkKey(columns); err != nil {
			return result, err
		}
	}
	i := &importer{ImportOptions: o, schema: schema, columns: columns}
	if i.Rejects == nil {
		i.Rejects = &Rejects{}
	}
	if i.loader, err = newColumnLoader(ctx, i); err != nil {
		return result, err
	}
	result.Flight = i.loader != nil
	result.Begun = true
	if o.State != nil {
		o.State.journal.before = i.Rejects.sync
	}
	err = i.run(ctx, segments)
	if o.State != nil {
		err = errors.Join(err, o.State.journal.flush())
	}
	result.Rows = i.written.Load()
	return result, err
}

// checkKey returns an error if the database generates a part of the key. Import calls it when it would send rows again
// that an earlier run has sent. With a generated key, Import cannot find the earlier rows in the table, and would write
// them a second time with new keys.
func (o *ImportOptions) checkKey(columns []bulk.ColumnInfo) error {
	for _, name := range o.Table.Key {
		if !slices.ContainsFunc(columns, func(c bulk.ColumnInfo) bool { return strings.EqualFold(c.Name, name) }) {
			return fmt.Errorf("rows that were sent before have changed, or would be sent in another way, and %s of table %s, which the database makes, cannot tell which rows of the table they are: "+
				"delete those rows there, and the file %s, and import all rows again", name, o.Table.Name, o.State.Path())
		}
	}
	return nil
}

// importer is a running import.
type importer struct {
	ImportOptions
	schema  *arrow.Schema
	columns []bulk.ColumnInfo
	loader  *columnLoader // nil if rows are written as mutations
	written atomic.Int64
}

func (i *importer) run(ctx context.Context, segments []bulk.Segment) error {
	group, ctx := errgroup.WithContext(ctx)
	work := make(chan int, len(segments))
	for n, s := range segments {
		i.Progress.addTotal(s.Bytes())
		work <- n
	}
	close(work)
	for range max(i.Parallel, 1) {
		group.Go(func() error {
			for n := range work {
				if err := i.segment(ctx, segments[n]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// commitsAtOnce is the maximum number of commits of a segment that run at once, while the segment is read.
const commitsAtOnce = 2

// segment imports a segment.
func (i *importer) segment(ctx context.Context, s bulk.Segment) error {
	e, err := newEncoder(i.schema, i.columns)
	if err != nil {
		return err
	}
	p := newPipeline(ctx, i, s.Extent())
	read := int64(0) // how much of the segment was read, in the unit of s.Bytes()
	err = bulk.EachOf(p.ctx, s, func(batch arrow.RecordBatch, from bulk.Reader) error {
		i.Progress.addDone(from.Progress() - read)
		read = from.Progress()
		if i.loader != nil {
			return p.addColumns(batch, from)
		}
		return p.add(e, batch, from)
	})
	if err == nil {
		p.flush()
	}
	if wrong := p.wait(); wrong != nil {
		err = wrong // the failure of a commit has ended the reading
	}
	if err != nil {
		return err
	}
	i.Progress.addDone(s.Bytes() - read)
	return p.end()
}
