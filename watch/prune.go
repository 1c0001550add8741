package watch

import (
	"context"
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// pruneRows is the number of rows whose commit timestamp one transaction sets to NULL. It is small so that rows
	// are locked only briefly.
	pruneRows = 1000
	// minPruneInterval and maxPruneInterval bound the interval at which the pruner looks for old rows. The interval is
	// a tenth of TableOptions.PruneAfter.
	minPruneInterval = 100 * time.Millisecond
	maxPruneInterval = time.Minute
)

// pruner sets commit timestamps that are older than a given age to NULL. Polls do not see this as a change, because
// they do not find rows without a commit timestamp. If a row is written meanwhile, the row keeps its new timestamp,
// since the transaction that sets NULL first reads the timestamps again.
type pruner struct {
	client *spanner.Client
	table  TableID
	name   string // the table's name in mutations
	commit string
	key    []string
	text   string // the query up to WHERE; a condition on shards may follow, and then the text in the field tail
	tail   string
	shards ShardProvider
	after  time.Duration
}

func newPruner(p *poll, d *described, commit string) (*pruner, error) {
	if !d.nullable[commit] || slices.Contains(d.keyNames(), commit) {
		return nil, status.Errorf(codes.FailedPrecondition, "Cannot prune table %s: its column %s cannot be NULL", d.id, commit)
	}
	key := ""
	for _, k := range d.key {
		key += quote(k.name) + ", "
	}
	column := quote(commit)
	return &pruner{
		client: p.client, table: d.id, name: d.id.String(), commit: commit, key: d.keyNames(), shards: p.o.Shards, after: p.o.PruneAfter,
		text: "SELECT " + key + column + " FROM " + d.id.quoted() + p.o.Hint + " WHERE ",
		tail: column + " <= @until ORDER BY " + column + " LIMIT @limit",
	}, nil
}

// run prunes at each tick until ctx ends. It reports errors to out, and tries again at the next tick.
func (p *pruner) run(ctx context.Context, out Sink) {
	ticker := time.NewTicker(min(max(p.after/10, minPruneInterval), maxPruneInterval))
	defer ticker.Stop()
	for {
		if err := p.prune(ctx, out); err != nil && ctx.Err() == nil {
			out.Report(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// prune sets old commit timestamps to NULL, but only those of rows that were delivered according to the stored
// checkpoint.
func (p *pruner) prune(ctx context.Context, out Sink) error {
	now, err := now(ctx, p.client)
	if err != nil {
		return err
	}
	until := now.Add(-p.after)
	if stored := out.Stored().Timestamp; stored.Before(until) {
		until = stored
	}
	stmt := p.statement(until)
	for {
		old, err := p.find(ctx, stmt, p.client.Single())
		if err != nil || len(old) == 0 {
			return err
		}
		n := 0
		_, err = p.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			old, err := p.find(ctx, stmt, tx)
			n = len(old)
			if err != nil {
				return err
			}
			return tx.BufferWrite(old)
		}, spanner.TransactionOptions{ExcludeTxnFromChangeStreams: true, CommitPriority: spannerpb.RequestOptions_PRIORITY_LOW, TransactionTag: "watch_prune"})
		if err != nil {
			return err
		}
		out.Observe(Reading{Pruned: n})
	}
}

func (p *pruner) statement(until time.Time) spanner.Statement {
	params := map[string]any{"until": until, "limit": int64(pruneRows)}
	text := p.text
	if p.shards != nil {
		condition, more := p.shards.Filter(time.Time{}, until)
		text += condition + " AND "
		maps.Copy(params, more)
	}
	return spanner.Statement{SQL: text + p.tail, Params: params}
}

// find runs a statement and returns, for each row, a mutation that sets the commit timestamp to NULL.
func (p *pruner) find(ctx context.Context, stmt spanner.Statement, in interface {
	Query(context.Context, spanner.Statement) *spanner.RowIterator
}) ([]*spanner.Mutation, error) {
	var list []*spanner.Mutation
	columns := append(slices.Clone(p.key), p.commit)
	err := in.Query(ctx, stmt).Do(func(row *spanner.Row) error {
		values := make([]any, len(columns))
		for i := range p.key {
			values[i] = spanner.GenericColumnValue{Type: row.ColumnType(i), Value: row.ColumnValue(i)}
		}
		values[len(p.key)] = spanner.NullTime{}
		list = append(list, spanner.Update(p.name, columns, values))
		return nil
	})
	return list, err
}
