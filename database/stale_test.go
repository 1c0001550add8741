package database

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// A past is a database with named timestamps at which the test reads.
type past struct {
	*aged
	marks map[string]mvcc.Timestamp
}

// TestStaleReads runs the scripts in testdata/stale. The scripts use the commands of TestRowDeletion and these:
//
//	create                     drops the database and makes it again, from statements, one a line
//	ddl [mark=NAME,...]        runs statements, one a line, as one batch; marks name the times at which they took effect
//	hold                       begins a schema change that works on existing rows, and leaves it unfinished after its
//	                           first catalog is published
//	mark NAME                  gives the name NAME to the time of a strong read
//	bound KIND [DURATION|NAME] prints the time at which a read with this bound happens, as a mark's name or relative
//	                           to the clock
//	earliest                   prints the earliest version time, relative to the clock
//	query at=NAME|DURATION     prints rows, or the error
//	read at=NAME|DURATION table=T columns=(C, ...) [index=I]
//	                           prints all rows that a read of the table or index returns, or the error
//	versions                   prints the number of schema versions that are kept
func TestStaleReads(t *testing.T) {
	datadriven.Walk(t, "testdata/stale", func(t *testing.T, path string) {
		p := &past{aged: newAged(t), marks: map[string]mvcc.Timestamp{}}
		p.reopenOn(&disktest.Refusing{Store: p.store})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := p.run(d)
			if err != nil {
				return out + times.ReplaceAllString(fmt.Sprintf("%s: %v\n", usererror.CodeOf(err), err), "TIME")
			}
			return out
		})
	})
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

func (p *past) run(d *datadriven.TestData) (out string, err error) {
	ctx := context.Background()
	switch d.Cmd {
	case "create":
		if err := dropDatabase(p.Registry); err != nil {
			return "", err
		}
		p.db, err = p.CreateDatabase(ctx, testName, lines(d))
		return "", err
	case "ddl":
		return "", p.db.UpdateSchema(ctx, lines(d), &schemachange.Operation{Progress: func(done schemachange.Progress) {
			if len(d.CmdArgs) > 0 && done.Percent == 100 {
				p.marks[d.CmdArgs[0].Vals[done.Statement]] = mvcc.TimestampOf(done.Commit)
			}
		}})
	case "hold":
		return "", hold(p.db, p.store.(*disktest.Refusing), d.Input, 0)
	case "mark":
		p.marks[d.CmdArgs[0].Key], err = p.bound(txn.Bound{})
		return "", err
	case "bound":
		return p.runBound(d)
	case "earliest":
		return fmt.Sprintln(p.db.EarliestVersion().Sub(p.clock())), nil
	case "query":
		if d.HasArg("at") {
			return p.answer(p.timeOf(d), d.Input)
		}
	case "read":
		return p.readAt(d)
	case "versions":
		return fmt.Sprintln(len(p.db.schema.Versions())), nil
	case "restart":
		_, err := p.aged.run(d)
		return "", err
	case "collect":
		return "", p.db.collect(ctx)
	}
	return p.aged.run(d)
}

func lines(d *datadriven.TestData) []string {
	if d.Input == "" {
		return nil
	}
	return strings.Split(d.Input, "\n")
}

// time returns the timestamp of a mark. If there is no mark of that name, the name is a duration relative to the clock.
func (p *past) time(name string) mvcc.Timestamp {
	if at, ok := p.marks[name]; ok {
		return at
	}
	ago, err := time.ParseDuration(name)
	if err != nil {
		p.t.Fatal(err)
	}
	return mvcc.TimestampOf(p.clock().Add(ago))
}

func (p *past) bound(b txn.Bound) (mvcc.Timestamp, error) {
	ctx := context.Background()
	if b.Time.After(p.clock()) { // the clock stands still: a read in the future waits until its context ends
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, time.Now())
		defer cancel()
	}
	s, err := p.db.Transactions().Snapshot(ctx, b)
	if err != nil {
		return 0, err
	}
	return s.Timestamp(), s.Close()
}

func (p *past) runBound(d *datadriven.TestData) (string, error) {
	b := txn.Bound{Kind: map[string]txn.BoundKind{
		"strong": txn.Strong, "read": txn.ReadTimestamp, "exact": txn.ExactStaleness, "min": txn.MinReadTimestamp, "max": txn.MaxStaleness,
	}[d.CmdArgs[0].Key]}
	switch b.Kind {
	case txn.ReadTimestamp, txn.MinReadTimestamp:
		b.Time = p.time(d.CmdArgs[1].Key).Time()
	case txn.ExactStaleness, txn.MaxStaleness:
		b.Duration = -p.time(d.CmdArgs[1].Key).Time().Sub(p.clock())
	}
	at, err := p.bound(b)
	if err != nil {
		return "", err
	}
	for name, mark := range p.marks {
		if mark == at {
			return name + "\n", nil
		}
	}
	return fmt.Sprintln(at.Time().Sub(p.clock())), nil
}

// at returns the catalog and the snapshot with which a request reads at a timestamp.
func (p *past) at(ts mvcc.Timestamp) (*schema.Catalog, *txn.Snapshot, error) {
	snapshot, err := p.db.Transactions().Snapshot(context.Background(), txn.Bound{Kind: txn.ReadTimestamp, Time: ts.Time()})
	if err != nil {
		return nil, nil, err
	}
	c, err := p.db.CatalogAt(snapshot.Timestamp())
	return c, snapshot, err
}

func (p *past) timeOf(d *datadriven.TestData) mvcc.Timestamp {
	var name string
	d.ScanArgs(p.t, "at", &name)
	return p.time(name)
}

// answer returns the rows of a query at a timestamp.
func (p *past) answer(at mvcc.Timestamp, sql string) (string, error) {
	c, snapshot, err := p.at(at)
	if err != nil {
		return "", err
	}
	s, err := p.db.Prepare(context.Background(), c, sql, nil, prepare.Options{})
	if err != nil {
		return "", err
	}
	rows, err := s.Run(context.Background(), prepare.Run{View: snapshot}, p.clock())
	if err != nil {
		return "", err
	}
	return p.print(rows)
}

func (p *past) readAt(d *datadriven.TestData) (string, error) {
	c, snapshot, err := p.at(p.timeOf(d))
	if err != nil {
		return "", err
	}
	var name, index string
	d.ScanArgs(p.t, "table", &name)
	d.MaybeScanArgs(p.t, "index", &index)
	columns, _ := d.Arg("columns")
	projection, err := p.db.Projection(c, name, index, columns.Vals)
	if err != nil {
		return "", err
	}
	spans, err := projection.Spans(table.KeySet{All: true})
	if err != nil {
		return "", err
	}
	read := table.Read{Projection: projection.Projection, Spans: spans}
	return p.print(read.Open(context.Background(), snapshot))
}

// print prints rows.
func (p *past) print(rows interface {
	Next() (bool, error)
	Values([]value.Value) []value.Value
	Close() error
}) (string, error) {
	defer rows.Close()
	var out strings.Builder
	for {
		more, err := rows.Next()
		if err != nil || !more {
			return out.String(), err
		}
		for _, v := range rows.Values(nil) {
			out.WriteString(p.text(v) + " ")
		}
		out.WriteByte('\n')
	}
}
