package watch

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/structpb"
)

// ChangeSets is a table into which every transaction writes a row with an id and its commit timestamp. It stamps the id on the rows that it
// changes, too. So tables are watched that have no commit timestamp, and need no index that begins with one: an index on an id at random is spread by itself.
// A row of change sets is read, and then the rows with its id. The zero value has the Java library's names:
//
//	CREATE TABLE CHANGE_SETS (CHANGE_SET_ID STRING(MAX), COMMIT_TIMESTAMP TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (CHANGE_SET_ID);
//	CREATE TABLE ... (..., CHANGE_SET_ID STRING(MAX)) ...;
//
// with indexes on COMMIT_TIMESTAMP and on the CHANGE_SET_ID of the data.
type ChangeSets struct {
	Table           string // "" is CHANGE_SETS
	ID              string // the column of its key; "" is CHANGE_SET_ID
	CommitTimestamp string // its column; "" is COMMIT_TIMESTAMP
	DataID          string // the column of tables that are watched; "" is CHANGE_SET_ID
	Hint            string // behind the name of Table in polls, as TableOptions.Hint is behind the watched table's
}

// ReadWriteTransaction runs f in a transaction, as the client's method of this name does, which also writes a row of change sets. f puts the id into the
// column DataID of all rows that it writes.
func (c *ChangeSets) ReadWriteTransaction(ctx context.Context, client *spanner.Client, f func(ctx context.Context, tx *spanner.ReadWriteTransaction, id string) error) (time.Time, error) {
	id := uuid.NewString()
	return client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := tx.BufferWrite([]*spanner.Mutation{c.Mutation(id)}); err != nil {
			return err
		}
		return f(ctx, tx, id)
	})
}

// Mutation writes the row of change sets, for transactions that are made otherwise. A transaction needs an id of its own, such as a random UUID.
func (c *ChangeSets) Mutation(id string) *spanner.Mutation {
	return spanner.InsertOrUpdate(c.table(), []string{c.idColumn(), c.commitColumn()}, []any{id, spanner.CommitTimestamp})
}

func (c *ChangeSets) table() string        { return or(c.Table, "CHANGE_SETS") }
func (c *ChangeSets) idColumn() string     { return or(c.ID, "CHANGE_SET_ID") }
func (c *ChangeSets) commitColumn() string { return or(c.CommitTimestamp, "COMMIT_TIMESTAMP") }
func (c *ChangeSets) dataColumn() string   { return or(c.DataID, "CHANGE_SET_ID") }

func or(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

func (c *ChangeSets) tableID(database string) TableID { return named(database, c.table()) }

// feed is the id of a feed that reads change sets for one table: what the Java library has in its repository.
func (c *ChangeSets) feed(table TableID, shard ShardID) FeedID {
	text := table.Database + "/" + table.quoted()
	if shard.Text != "" {
		text += " " + shard.Text
	}
	return FeedID{c.tableID(table.Database), ShardID{spannerpb.TypeCode_STRING, text}}
}

// changeSetsAtOnce is for how many change sets one statement reads the data.
const changeSetsAtOnce = 100

// changeSetReader reads the rows that change sets have changed.
type changeSetReader struct {
	client *spanner.Client
	text   string
	id     string // the column of the table of change sets
	column string // that of the data
	rows   rowReader
}

func (p *poll) newChangeSetReader(ctx context.Context, id string) (*changeSetReader, error) {
	d, err := describe(ctx, p.client, p.table)
	if err != nil {
		return nil, err
	}
	column, err := d.column(p.o.ChangeSets.dataColumn())
	if err != nil {
		return nil, err
	}
	selected, err := d.selectList(p.o.Columns, column)
	if err != nil {
		return nil, err
	}
	order := quote(column)
	for _, k := range d.key {
		order += ", " + ordered(k)
	}
	text := fmt.Sprintf("SELECT %s FROM %s%s WHERE %s IN UNNEST(@ids) ORDER BY %s", selected, d.id.quoted(), p.o.Hint, quote(column), order)
	return &changeSetReader{client: p.client, text: text, id: id, column: column, rows: rowReader{table: d.id, names: d.keyNames()}}, nil
}

// expand puts the changes of data in place of those of the table of change sets. A change set of which no row is left has none.
func (r *changeSetReader) expand(ctx context.Context, read time.Time, b *batch) error {
	var ids []spanner.GenericColumnValue
	for _, tx := range b.list {
		for i := range tx.Changes {
			row := tx.Changes[i].Values
			at := row.Index(r.id)
			ids = append(ids, spanner.GenericColumnValue{Type: row.Columns[at].Type, Value: row.Values[at]})
		}
	}
	data := map[string][]Change{}
	for len(ids) > 0 {
		n := min(changeSetsAtOnce, len(ids))
		if err := r.read(ctx, read, ids[:n], data); err != nil {
			return err
		}
		ids = ids[n:]
	}
	list, after := b.list, b.after
	b.list, b.after = nil, nil
	for i, tx := range list {
		var changes []Change
		for j := range tx.Changes {
			row := tx.Changes[j].Values
			for _, c := range data[row.Values[row.Index(r.id)].String()] {
				c.CommitTimestamp = tx.CommitTimestamp
				changes = append(changes, c)
			}
		}
		if tx.Changes = changes; len(changes) > 0 {
			b.list, b.after = append(b.list, tx), append(b.after, after[i])
		}
	}
	return nil
}

// read reads the rows of some change sets, by their ids.
func (r *changeSetReader) read(ctx context.Context, at time.Time, ids []spanner.GenericColumnValue, data map[string][]Change) error {
	list := make([]*structpb.Value, len(ids))
	for i := range ids {
		list[i] = ids[i].Value
	}
	param := spanner.GenericColumnValue{
		Type:  &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: ids[0].Type},
		Value: structpb.NewListValue(&structpb.ListValue{Values: list}),
	}
	stmt := spanner.Statement{SQL: r.text, Params: map[string]any{"ids": param}}
	idAt := -1
	begin := func(m *spannerpb.ResultSetMetadata) error {
		err := r.rows.begin(m)
		idAt = Row{Columns: r.rows.columns}.Index(r.column)
		return err
	}
	ro := r.client.Single().WithTimestampBound(spanner.ReadTimestamp(at))
	return query(ctx, ro, stmt, "", begin, func(row *spanner.Row) error {
		id := row.ColumnValue(idAt).String()
		data[id] = append(data[id], r.rows.change(row, at))
		return nil
	})
}
