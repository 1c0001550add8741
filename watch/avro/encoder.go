package avro

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/watch"
)

// Encoder encodes changes by the schemas of their tables, for which it asks the database when a change has other columns than it knows.
type Encoder struct {
	client *spanner.Client

	mu     sync.Mutex
	tables map[watch.TableID]*table
}

// NewEncoder makes an encoder for the tables of a database.
func NewEncoder(client *spanner.Client) *Encoder {
	return &Encoder{client: client, tables: map[watch.TableID]*table{}}
}

// table is what is known of one.
type table struct {
	columns []Column
	// layout is where the values of polled rows stand whose columns begin with first: for each column of the table the place, or -1.
	first  *watch.Column
	layout []int
}

// Encode returns the datum of a change. A change that a poll has found has all columns. Of one from a change stream, those that were not
// recorded are null, and the schema says of all columns but the key's that they may be.
func (e *Encoder) Encode(ctx context.Context, _ *watch.Transaction, c *watch.Change) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.table(ctx, c)
	if err != nil {
		return nil, err
	}
	var b []byte
	for i, column := range t.columns {
		v := structpb.NewNullValue()
		if c.Kind == watch.Upsert {
			if at := t.layout[i]; at >= 0 {
				v = c.Values.Values[at]
			}
		} else if at := c.Key.Index(column.Name); at >= 0 {
			v = c.Key.Values[at]
		} else {
			column.Nullable = true
			if at := c.Values.Index(column.Name); at >= 0 {
				v = c.Values.Values[at]
			}
		}
		if b, err = AppendField(b, column, v); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Schema returns the schema of the datum of a change.
func (e *Encoder) Schema(ctx context.Context, c *watch.Change) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.table(ctx, c)
	if err != nil {
		return "", err
	}
	columns := append([]Column(nil), t.columns...)
	for i := range columns {
		columns[i].Nullable = columns[i].Nullable || c.Kind != watch.Upsert && c.Key.Index(columns[i].Name) < 0
	}
	return Schema(c.Table.Schema, c.Table.Name, columns)
}

// table returns that of a change, and reads it if it is not known, or if the change has other columns.
func (e *Encoder) table(ctx context.Context, c *watch.Change) (*table, error) {
	t := e.tables[c.Table]
	if t != nil && t.fits(c) {
		return t, nil
	}
	columns, err := e.read(ctx, c.Table)
	if err != nil {
		return nil, fmt.Errorf("the columns of table %s: %w", c.Table, err)
	}
	t = &table{columns: columns}
	t.fits(c)
	e.tables[c.Table] = t
	return t, nil
}

// fits says whether the table has the columns of a change, and those alone if a poll has found it, and finds out where its values stand.
func (t *table) fits(c *watch.Change) bool {
	if c.Kind != watch.Upsert {
		for _, column := range c.Values.Columns {
			if t.index(column.Name) < 0 {
				return false
			}
		}
		return true
	}
	if len(c.Values.Columns) == 0 || t.first == &c.Values.Columns[0] {
		return true
	}
	t.first, t.layout = &c.Values.Columns[0], make([]int, len(t.columns))
	found := 0
	for i, column := range t.columns {
		if t.layout[i] = c.Values.Index(column.Name); t.layout[i] >= 0 {
			found++
		}
	}
	return found == len(t.columns) && found == len(c.Values.Columns)
}

func (t *table) index(name string) int {
	for i := range t.columns {
		if t.columns[i].Name == name {
			return i
		}
	}
	return -1
}

// read asks the database for the columns of a table, at one timestamp.
func (e *Encoder) read(ctx context.Context, id watch.TableID) ([]Column, error) {
	tx := e.client.ReadOnlyTransaction()
	defer tx.Close()
	name := "`" + strings.ReplaceAll(id.String(), ".", "`.`") + "`"
	rows := tx.Query(ctx, spanner.Statement{SQL: "SELECT * FROM " + name + " LIMIT 0"})
	defer rows.Stop()
	if _, err := rows.Next(); err != iterator.Done {
		return nil, err
	}
	types := map[string]*sppb.Type{}
	for _, f := range rows.Metadata.GetRowType().GetFields() {
		types[f.GetName()] = f.GetType()
	}
	var columns []Column
	err := tx.Query(ctx, spanner.Statement{
		SQL: `SELECT COLUMN_NAME, IS_NULLABLE FROM INFORMATION_SCHEMA.COLUMNS
WHERE TABLE_CATALOG = @catalog AND TABLE_SCHEMA = @schema AND TABLE_NAME = @table ORDER BY ORDINAL_POSITION`,
		Params: map[string]any{"catalog": id.Catalog, "schema": id.Schema, "table": id.Name},
	}).Do(func(r *spanner.Row) error {
		var name, nullable string
		if err := r.Columns(&name, &nullable); err != nil {
			return err
		}
		if types[name] != nil { // else SELECT * leaves it out
			columns = append(columns, Column{name, types[name], nullable != "NO"})
		}
		return nil
	})
	return columns, err
}
