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

// ChangeSets describes a table of change sets, with which tables without a commit timestamp can be watched. A change
// set is the list of rows that one transaction writes. Every transaction inserts a row with a random id and its commit
// timestamp into the table of change sets, and also writes this id into every row of its change set.
//
// A watched table then needs an index on the ids instead of one on a commit timestamp. An index on a commit timestamp
// gets all new entries at its end, but random ids spread the new entries over the whole index.
//
// The watcher polls the table of change sets. It reads the rows of a change set when the handler is ready for them. If
// a later transaction has changed a row again, the row comes only with the later transaction.
//
// The zero value has the names that Google's Java library Spanner Change Watcher uses. With these names, the tables
// are:
//
//	CREATE TABLE CHANGE_SETS (CHANGE_SET_ID STRING(MAX), COMMIT_TIMESTAMP TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (CHANGE_SET_ID);
//	CREATE TABLE ... (..., CHANGE_SET_ID STRING(MAX)) ...;
//
// The first table needs an index on COMMIT_TIMESTAMP, and each watched table needs one on CHANGE_SET_ID.
type ChangeSets struct {
	Table           string // the table of change sets; "" means CHANGE_SETS
	ID              string // the key column of the table of change sets; "" means CHANGE_SET_ID
	CommitTimestamp string // the commit-timestamp column of the table of change sets; "" means COMMIT_TIMESTAMP
	DataID          string // the column of the watched tables that holds the id; "" means CHANGE_SET_ID
	Hint            string // a table hint for queries on Table; TableOptions.Hint is the hint for the watched table
}

// ReadWriteTransaction runs f in a transaction, as the client's method of this name does. In the same transaction, it
// inserts a row into the table of change sets. f must write its parameter id into the column DataID of every row that
// it writes.
func (c *ChangeSets) ReadWriteTransaction(ctx context.Context, client *spanner.Client, f func(ctx context.Context, tx *spanner.ReadWriteTransaction, id string) error) (time.Time, error) {
	id := uuid.NewString()
	return client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := tx.BufferWrite([]*spanner.Mutation{c.Mutation(id)}); err != nil {
			return err
		}
		return f(ctx, tx, id)
	})
}

// Mutation returns the mutation that inserts the row of a change set, for transactions that do not use
// ReadWriteTransaction. Each transaction needs an id of its own, such as a random UUID.
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

// feed returns the id of the feed that reads change sets for one table. The id has the form that Google's Java library
// Spanner Change Watcher stores in its repository.
func (c *ChangeSets) feed(table TableID, shard ShardID) FeedID {
	text := table.Database + "/" + table.quoted()
	if shard.Text != "" {
		text += " " + shard.Text
	}
	return FeedID{c.tableID(table.Database), ShardID{spannerpb.TypeCode_STRING, text}}
}

// changeSetsAtOnce is the maximum number of change sets whose rows one statement reads.
const changeSetsAtOnce = 100

// changeSetReader reads the rows of change sets, one page at a time, when the handler is ready to take them. At any
// time, it keeps only the rows of one page or of one Transaction in memory. It does so for change sets of any size,
// even if the handler is slow.
type changeSetReader struct {
	client *spanner.Client
	head   string // the first part of the query for a page: SELECT ... WHERE ... IN UNNEST(@ids)
	tail   string // the last part of the query: ORDER BY ... LIMIT @limit
	id     string // the id column in the table of change sets
	column string // the id column in the watched table
	order  keyOrder
	rows   rowReader
	check  *tableCheck
	limit  int // the maximum number of rows in a page
	bytes  int // the size in bytes at which a page ends early
	most   int // the maximum number of changes in a Transaction
	// atOnce is the number of change sets that the next statement reads. It is halved when their rows exceed a page,
	// and doubled when they have few rows.
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

// handOut is a function that gives transactions to the handler, and tells the Sink the checkpoint that follows each
// transaction.
type handOut func(ctx context.Context, list []*Transaction, after []Checkpoint) error

// deliver gives the handler the rows of the change sets in list. It leaves out a change set whose rows were all
// written again by later transactions.
func (r *changeSetReader) deliver(ctx context.Context, list []*Transaction, after []Checkpoint, hand handOut) error {
	for len(list) > 0 {
		n, sets := r.batchSize(list)
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

// batchSize chooses the transactions whose change sets the next statement reads. These are the first n in list, and
// sets is the number of their change sets.
func (r *changeSetReader) batchSize(list []*Transaction) (n, sets int) {
	n, sets = 1, len(list[0].Changes)
	for n < len(list) && sets+len(list[n].Changes) <= r.atOnce {
		sets += len(list[n].Changes)
		n++
	}
	return n, sets
}

// ids returns the ids of the transactions' change sets.
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

// distribute adds each row to the transaction that has changed it. It leaves out transactions without rows, and their
// checkpoints.
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

// with returns a copy of the transaction without its changes and with the given read timestamp.
func (tx *Transaction) with(read time.Time) *Transaction {
	return &Transaction{CommitTimestamp: tx.CommitTimestamp, ReadTimestamp: read, Partial: tx.Partial}
}

// add adds changes to the transaction and gives them the transaction's commit timestamp.
func (tx *Transaction) add(list ...Change) {
	for _, c := range list {
		c.CommitTimestamp = tx.CommitTimestamp
		tx.Changes = append(tx.Changes, c)
	}
}

// deliverLarge delivers a transaction whose rows exceed a page. All pages of one Transaction are read at the same
// timestamp. If the rows are split into several Transactions, each begins with a new strong read. A read at the old
// timestamp could fail, because the handler may take longer for one Transaction than the database keeps old versions of
// rows.
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

// place returns the position of a row in the order in which pages are read: by id of the change set, then by key.
func (r *changeSetReader) place(c Change) []*structpb.Value {
	return append([]*structpb.Value{c.Values.Values[c.Values.Index(r.column)]}, c.Key.Values...)
}

// page reads the first rows of the change sets with these ids. If the parameter behind is not nil, page reads the first
// rows after that position instead. full says that there may be more rows.
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
