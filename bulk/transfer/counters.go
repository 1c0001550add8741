package transfer

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
)

// counterMargin is added to the current counter of a sequence to get the start of the exported sequence. It is needed
// because the sequence may be used during the export, and because Cloud Spanner does not say whether the current
// counter value was already given out. Source: SEQUENCE_COUNTER_BUFFER of Google's Dataflow template.
const counterMargin = 1000

// define changes e.DDL, the database's DDL, which the export writes into its files for a later import. In the changed
// DDL, each sequence or identity column that has already returned values starts after these values. define reads the
// counters of the sequences and identity columns after the snapshot was taken, so that the counters are beyond all keys
// in the snapshot. If the rows of a query are exported, define does nothing.
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

// readCounters reads the counters of sequences and identity columns. It returns the new start values of those that have
// already returned values. The keys of the map are the ones that withCounters takes: the name of a sequence, or
// TABLE.COLUMN, in lower case.
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
