package transfer

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
)

// counterMargin is how far behind the counter of a sequence the counter of its copy begins, since the sequence may be used while it is exported, and since
// Cloud Spanner does not say whether the state of a counter was given out. Source: SEQUENCE_COUNTER_BUFFER of Google's Dataflow template.
const counterMargin = 1000

// define makes the definitions that an export of tables has: those of the database, but that the counters of sequences and identity columns that were used
// begin behind what they have given out. The counters are read behind the snapshot, so that they are behind all keys in it.
func (e *exporter) define(ctx context.Context) (err error) {
	if e.Query != "" {
		return nil
	}
	counters, err := e.readCounters(ctx)
	if err != nil {
		return err
	}
	ddl := make([]string, len(e.DDL))
	for i, text := range e.DDL {
		ddl[i] = withCounters(text, counters)
	}
	e.DDL = ddl
	if e.Format != SpannerExport {
		return nil
	}
	if e.records, err = recordsOf(ddl); err == nil && len(e.Tables) > 0 {
		e.records.leaveOut()
	}
	return err
}

// readCounters asks for the counters of sequences and identity columns, and returns where those that were used are to begin, as withCounters wants it.
func (e *exporter) readCounters(ctx context.Context) (map[string]int64, error) {
	counters := map[string]int64{}
	read := func(name string, statement spanner.Statement) error {
		err := e.Client.Single().Query(ctx, statement).Do(func(r *spanner.Row) error {
			var state spanner.NullInt64
			err := r.Column(0, &state)
			if state.Valid {
				counters[strings.ToLower(name)] = state.Int64 + counterMargin
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("the counter of %s: %w", name, err)
		}
		return nil
	}
	for _, text := range e.DDL {
		statement, err := parseDDL(text)
		if err != nil {
			continue
		}
		switch s := statement.(type) {
		case *ast.CreateSequence:
			name := pathName(s.Name)
			if err := read(name, spanner.NewStatement("SELECT GET_INTERNAL_SEQUENCE_STATE(SEQUENCE "+quoteName(name)+")")); err != nil {
				return nil, err
			}
		case *ast.CreateTable:
			for _, c := range s.Columns {
				if _, ok := c.DefaultSemantics.(*ast.IdentityColumn); !ok {
					continue
				}
				name := pathName(s.Name) + "." + c.Name.Name
				if err := read(name, spanner.NewStatement("SELECT GET_TABLE_COLUMN_IDENTITY_STATE("+token.QuoteSQLString(name)+")")); err != nil {
					return nil, err
				}
			}
		}
	}
	return counters, nil
}
