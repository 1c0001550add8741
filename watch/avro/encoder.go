package avro

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/watch"
)

// Encoder encodes changes with the schemas of their tables. It asks the database for a table's columns when a change
// has columns that the Encoder does not know.
type Encoder struct {
	client *spanner.Client
	stream bool // changes are records of change streams

	mu     sync.Mutex
	tables map[watch.TableID]*table
}

// NewEncoder returns an encoder for polled rows. A column that a row does not have becomes null. If that column is NOT
// NULL, Encode returns an error.
func NewEncoder(client *spanner.Client) *Encoder {
	return &Encoder{client: client, tables: map[watch.TableID]*table{}}
}

// NewStreamEncoder returns an encoder for records of change streams. A column that was not recorded becomes null, so
// in the schema all columns are nullable except those of the key.
func NewStreamEncoder(client *spanner.Client) *Encoder {
	return &Encoder{client: client, stream: true, tables: map[watch.TableID]*table{}}
}

// table holds the columns of a table, and the layouts of its rows.
type table struct {
	columns []Column
	layouts []*layout // the layouts of all polled rows so far, each once
	layout  *layout   // the layout of the last polled row
}

// layout says where polled rows hold the values of the table's columns. layout.of lists the columns of these rows.
// layout.at has one number for each column of the table: the index of the column in layout.of, or -1 if the rows do not
// have the column.
type layout struct {
	of []watch.Column
	at []int
}

// Encode returns the Avro datum of a change.
func (e *Encoder) Encode(ctx context.Context, _ *watch.Transaction, c *watch.Change) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, err := e.table(ctx, c)
	if err != nil {
		return nil, err
	}
	var b []byte
	for i := range t.columns {
		if b, err = t.columns[i].AppendField(b, t.value(c, i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// value returns the value of the i-th column in a change. It is NULL if the change does not have the column.
func (t *table) value(c *watch.Change, i int) *structpb.Value {
	if c.Kind == watch.Upsert {
		if at := t.layout.at[i]; at >= 0 {
			return c.Values.Values[at]
		}
		return structpb.NewNullValue()
	}
	for _, row := range []watch.Row{c.Key, c.Values} {
		if at := row.Index(t.columns[i].name); at >= 0 {
			return row.Values[at]
		}
	}
	return structpb.NewNullValue()
}

// Schema returns the Avro schema of a table's changes. It reads the table's current columns from the database.
func (e *Encoder) Schema(ctx context.Context, id watch.TableID) (string, error) {
	columns, err := e.read(ctx, id)
	if err != nil {
		return "", err
	}
	return Schema(id.Schema, id.Name, columns), nil
}

// table returns the table of a change. It reads the table's columns from the database if the table is not known yet or
// if the change does not fit the known columns. The caller holds mu.
func (e *Encoder) table(ctx context.Context, c *watch.Change) (*table, error) {
	t := e.tables[c.Table]
	if t != nil && t.fits(c) {
		return t, nil
	}
	columns, err := e.read(ctx, c.Table)
	if err != nil {
		return nil, err
	}
	if t == nil || !slices.EqualFunc(t.columns, columns, Column.equal) {
		t = &table{columns: columns}
		e.tables[c.Table] = t
	}
	if c.Kind == watch.Upsert && !t.fits(c) {
		t.layout = t.layoutOf(c.Values.Columns)
		t.layouts = append(t.layouts, t.layout)
	}
	return t, nil
}

// fits reports whether the change has only columns that t knows. For a polled row, it also requires that the row has
// all columns of the table, or the same columns as an earlier row. For a polled row, fits sets t.layout.
func (t *table) fits(c *watch.Change) bool {
	if c.Kind != watch.Upsert {
		for _, column := range c.Values.Columns {
			if t.index(column.Name) < 0 {
				return false
			}
		}
		return true
	}
	if t.layout != nil && sameColumns(t.layout.of, c.Values.Columns) {
		return true
	}
	at := slices.IndexFunc(t.layouts, func(l *layout) bool { return sameColumns(l.of, c.Values.Columns) })
	if at >= 0 {
		t.layout = t.layouts[at]
		t.layout.of = c.Values.Columns
		return true
	}
	l := t.layoutOf(c.Values.Columns)
	if slices.Contains(l.at, -1) || len(l.at) != len(l.of) {
		return false
	}
	t.layout, t.layouts = l, append(t.layouts, l)
	return true
}

// sameColumns reports whether two rows have the same columns. All rows of one result share one slice of columns, so it
// compares the slices' addresses first.
func sameColumns(a, b []watch.Column) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true
	}
	return slices.EqualFunc(a, b, func(a, b watch.Column) bool { return a.Name == b.Name && proto.Equal(a.Type, b.Type) })
}

func (t *table) layoutOf(columns []watch.Column) *layout {
	l := &layout{columns, make([]int, len(t.columns))}
	for i, column := range t.columns {
		l.at[i] = watch.Row{Columns: columns}.Index(column.name)
	}
	return l
}

func (c Column) equal(other Column) bool {
	return c.name == other.name && c.nullable == other.nullable && proto.Equal(c.kind, other.kind)
}

func (t *table) index(name string) int {
	for i := range t.columns {
		if t.columns[i].name == name {
			return i
		}
	}
	return -1
}

const columnsQuery = `SELECT c.COLUMN_NAME, c.IS_NULLABLE = 'NO', k.COLUMN_NAME IS NOT NULL
FROM INFORMATION_SCHEMA.COLUMNS AS c
LEFT JOIN INFORMATION_SCHEMA.INDEX_COLUMNS AS k
  ON k.TABLE_CATALOG = c.TABLE_CATALOG AND k.TABLE_SCHEMA = c.TABLE_SCHEMA AND k.TABLE_NAME = c.TABLE_NAME
  AND k.COLUMN_NAME = c.COLUMN_NAME AND k.INDEX_TYPE = 'PRIMARY_KEY'
WHERE c.TABLE_CATALOG = @catalog AND c.TABLE_SCHEMA = @schema AND c.TABLE_NAME = @table
ORDER BY c.ORDINAL_POSITION`

// read reads the columns of a table from the database, at one timestamp. It leaves out hidden columns.
func (e *Encoder) read(ctx context.Context, id watch.TableID) (columns []Column, err error) {
	tx := e.client.ReadOnlyTransaction()
	defer tx.Close()
	types, err := typesOf(ctx, tx, id)
	if err != nil {
		return nil, fmt.Errorf("the columns of table %s: %w", id, err)
	}
	err = tx.Query(ctx, spanner.Statement{
		SQL: columnsQuery, Params: map[string]any{"catalog": id.Catalog, "schema": id.Schema, "table": id.Name},
	}).Do(func(r *spanner.Row) error {
		var name string
		var notNull, key bool
		if err := r.Columns(&name, &notNull, &key); err != nil {
			return err
		}
		if types[name] != nil { // SELECT * does not return hidden columns
			column, err := NewColumn(name, types[name], !notNull || e.stream && !key)
			if err != nil {
				return err
			}
			columns = append(columns, column)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the columns of table %s: %w", id, err)
	}
	return columns, nil
}

// typesOf returns the types of a table's columns, keyed by column name. It takes the types from the result of a query
// that returns no rows.
func typesOf(ctx context.Context, tx *spanner.ReadOnlyTransaction, id watch.TableID) (map[string]*sppb.Type, error) {
	rows := tx.Query(ctx, spanner.Statement{SQL: "SELECT * FROM `" + strings.ReplaceAll(id.String(), ".", "`.`") + "` LIMIT 0"})
	defer rows.Stop()
	if _, err := rows.Next(); err != iterator.Done {
		return nil, err
	}
	types := map[string]*sppb.Type{}
	for _, f := range rows.Metadata.GetRowType().GetFields() {
		types[f.GetName()] = f.GetType()
	}
	return types, nil
}
