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
// A row of change sets is polled, and the rows with its id are read when the handler is ready for them: one that a later transaction has changed again
// comes with that alone. The zero value has the Java library's names:
//
//	CREATE TABLE CHANGE_SETS (CHANGE_SET_ID STRING(MAX), COMMIT_TIMESTAMP TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (CHANGE_SET_ID);
//	CREATE TABLE ... (..., CHANGE_SET_ID STRING(MAX)) ...;
//
// with indexes on COMMIT_TIMESTAMP and on the CHANGE_SET_ID of the data.
type ChangeSets struct {
	Table           string // the table of change sets; "" is CHANGE_SETS
	ID              string // its key, a column; "" is CHANGE_SET_ID
	CommitTimestamp string // its column of commit timestamps; "" is COMMIT_TIMESTAMP
	DataID          string // the column of the tables that are watched which has the id; "" is CHANGE_SET_ID
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

// changeSetsAtOnce is for how many change sets one statement reads the data at most.
const changeSetsAtOnce = 100

// changeSetReader reads the rows that change sets have changed when the handler is ready to take them, a page at a time: however many rows change sets have,
// however large they are, and however slow the handler is, a page is in memory, or one Transaction's rows if these are more.
type changeSetReader struct {
	client *spanner.Client
	head   string // SELECT ... WHERE ... IN UNNEST(@ids)
	tail   string // ORDER BY ... LIMIT
	id     string // the column of the table of change sets
	column string // that of the data
	order  keyOrder
	rows   rowReader
	check  *tableCheck
	limit  int // rows of a page
	bytes  int // of a page
	most   int // changes of a Transaction
	// atOnce is for how many change sets the next statement reads: half as many when they had more rows than a page, and twice as many when they had few.
	atOnce int
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
	order := append(keyOrder{{name: column, code: d.code(column)}}, d.key...)
	return &changeSetReader{
		client: p.client,
		head:   fmt.Sprintf("SELECT %s FROM %s%s WHERE %s IN UNNEST(@ids)", selected, d.id.quoted(), p.o.Hint, quote(column)),
		tail:   " ORDER BY " + order.orderBy() + " LIMIT @limit",
		id:     id, column: column, order: order, check: newTableCheck(p.client, d), rows: rowReader{table: d.id, names: d.keyNames()},
		limit: p.o.Limit, bytes: maxPageBytes, most: MaxTransactionChanges, atOnce: changeSetsAtOnce,
	}, nil
}

// handOut has the handler take transactions, and gives a checkpoint behind each.
type handOut func(ctx context.Context, list []*Transaction, after []Checkpoint) error

// deliver hands out the changes of data in place of those of the table of change sets, which are in list. A change set of which no row is left has none.
func (r *changeSetReader) deliver(ctx context.Context, list []*Transaction, after []Checkpoint, hand handOut) error {
	for len(list) > 0 {
		n, sets := r.take(list)
		if sets > changeSetsAtOnce {
			if err := r.deliverLarge(ctx, list[0], after[0], hand); err != nil {
				return err
			}
			list, after = list[1:], after[1:]
			continue
		}
		rows, full, read, err := r.page(ctx, r.ids(list[:n]), nil, spanner.StrongRead())
		if err != nil {
			return err
		}
		switch {
		case full && n > 1:
			r.atOnce = max(sets/2, 1)
			continue
		case full:
			err = r.deliverLarge(ctx, list[0], after[0], hand)
		default:
			some, behind := r.distribute(list[:n], after[:n], rows, read)
			err = hand(ctx, some, behind)
		}
		if err != nil {
			return err
		}
		if !full && len(rows) < r.limit/2 {
			r.atOnce = min(2*r.atOnce, changeSetsAtOnce)
		}
		list, after = list[n:], after[n:]
	}
	return nil
}

// take is how many of the first transactions have their data read by one statement, and how many change sets these are.
func (r *changeSetReader) take(list []*Transaction) (n, sets int) {
	n, sets = 1, len(list[0].Changes)
	for n < len(list) && sets+len(list[n].Changes) <= r.atOnce {
		sets += len(list[n].Changes)
		n++
	}
	return n, sets
}

// ids are those of the change sets of transactions.
func (r *changeSetReader) ids(list []*Transaction) (ids []spanner.GenericColumnValue) {
	for _, tx := range list {
		for i := range tx.Changes {
			row := tx.Changes[i].Values
			at := row.Index(r.id)
			ids = append(ids, spanner.GenericColumnValue{Type: row.Columns[at].Type, Value: row.Values[at]})
		}
	}
	return ids
}

// distribute makes transactions of the rows of change sets.
func (r *changeSetReader) distribute(list []*Transaction, after []Checkpoint, rows []Change, read time.Time) (some []*Transaction, behind []Checkpoint) {
	data := map[string][]Change{}
	for _, c := range rows {
		id := c.Values.Values[c.Values.Index(r.column)].String()
		data[id] = append(data[id], c)
	}
	for i, tx := range list {
		out := tx.with(read)
		for _, id := range r.ids(list[i : i+1]) {
			out.add(data[id.Value.String()]...)
		}
		if len(out.Changes) > 0 {
			some, behind = append(some, out), append(behind, after[i])
		}
	}
	return some, behind
}

// with is the transaction without its changes, whose rows were read at another time.
func (tx *Transaction) with(read time.Time) *Transaction {
	return &Transaction{CommitTimestamp: tx.CommitTimestamp, ReadTimestamp: read, Partial: tx.Partial}
}

// add adds changes that the transaction has made.
func (tx *Transaction) add(list ...Change) {
	for _, c := range list {
		c.CommitTimestamp = tx.CommitTimestamp
		tx.Changes = append(tx.Changes, c)
	}
}

// deliverLarge hands out a transaction that has more rows than a page. The pages of one Transaction are read at the same timestamp. If it is one of several,
// the next begins with a strong read: the handler may have taken long.
func (r *changeSetReader) deliverLarge(ctx context.Context, tx *Transaction, after Checkpoint, hand handOut) error {
	out, bound := tx.with(time.Time{}), spanner.StrongRead()
	for ids := r.ids([]*Transaction{tx}); len(ids) > 0; ids = ids[min(changeSetsAtOnce, len(ids)):] {
		var last []*structpb.Value
		for full := true; full; {
			rows, more, read, err := r.page(ctx, ids[:min(changeSetsAtOnce, len(ids))], last, bound)
			if err != nil {
				return err
			}
			out.ReadTimestamp, bound = read, spanner.ReadTimestamp(read)
			fit := min(len(rows), r.most-len(out.Changes))
			full = more || fit < len(rows)
			out.add(rows[:fit]...)
			if fit > 0 {
				last = r.place(rows[fit-1])
			}
			if fit < len(rows) {
				out.Partial = true
				if err := hand(ctx, []*Transaction{out}, nil); err != nil {
					return err
				}
				out, bound = tx.with(time.Time{}), spanner.StrongRead()
			}
		}
	}
	if len(out.Changes) == 0 {
		return nil
	}
	return hand(ctx, []*Transaction{out}, []Checkpoint{after})
}

// place is where a row stands in the order of pages.
func (r *changeSetReader) place(c Change) []*structpb.Value {
	return append([]*structpb.Value{c.Values.Values[c.Values.Index(r.column)]}, c.Key.Values...)
}

// page reads the first rows of some change sets, or those behind a place. full says that more may follow.
func (r *changeSetReader) page(ctx context.Context, ids []spanner.GenericColumnValue, behind []*structpb.Value, bound spanner.TimestampBound) (rows []Change, full bool, read time.Time, err error) {
	list := make([]*structpb.Value, len(ids))
	for i := range ids {
		list[i] = ids[i].Value
	}
	params := map[string]any{"limit": int64(r.limit), "ids": spanner.GenericColumnValue{
		Type:  &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: ids[0].Type},
		Value: structpb.NewListValue(&structpb.ListValue{Values: list}),
	}}
	text := r.head
	if behind != nil {
		text += " AND " + r.order.behind(behind, params)
	}
	ro, left := r.client.Single().WithTimestampBound(bound), r.bytes
	err = query(ctx, ro, spanner.Statement{SQL: text + r.tail, Params: params}, "", r.rows.begin, func(row *spanner.Row) error {
		rows = append(rows, r.rows.change(row, time.Time{}))
		if left -= rowBytes(row); left < 0 {
			return errPageEnds
		}
		return nil
	})
	full = err == errPageEnds || len(rows) == r.limit
	if err != nil && err != errPageEnds {
		return nil, false, read, err
	}
	if read, err = ro.Timestamp(); err != nil {
		return nil, false, read, err
	}
	if full {
		return rows, true, read, r.check.check(ctx, read)
	}
	return rows, false, read, r.check.checkNowAndThen(ctx, read)
}
