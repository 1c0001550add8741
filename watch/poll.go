package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// poll is the feed of one table.
type poll struct {
	client        *spanner.Client
	table         TableID
	o             TableOptions
	interval, max time.Duration
}

// ID returns the id of the feed, which names the polled table. If the table is watched through change sets, the polled
// table is the table of change sets, and the shard names the watched table. Google's Java library Spanner Change
// Watcher does the same.
func (p *poll) ID() FeedID {
	id := FeedID{TableID: p.table}
	if p.o.Shards != nil {
		id.Shard = p.o.Shards.ID()
	}
	if p.o.ChangeSets != nil {
		id = p.o.ChangeSets.feed(p.table, id.Shard)
	}
	return id
}

const (
	// batchRows is the number of rows after which the complete transactions read so far go to the handler, while the
	// page is still being read.
	batchRows = 500
	// aheadPages is the number of pages that may be in memory: the one that the handler is taking, and the next one.
	aheadPages = 2
	// maxPageBytes is the size in bytes at which a page ends early, so that large rows do not fill the memory.
	maxPageBytes = 32 << 20
	// maxReadAge is how long a poll reads its pages at the same timestamp. After that, it takes a new timestamp. By
	// default, a database keeps old versions for only an hour (https://cloud.google.com/spanner/docs/use-pitr), and
	// reads at an older timestamp fail. Besides, newer rows are more useful than older ones.
	maxReadAge = 10 * time.Second
	// idleCheckpoint is the interval at which the checkpoint of a table is stored although the table has no changes.
	idleCheckpoint = time.Minute
)

// Read polls the table until ctx ends. A new goroutine reads pages while Read delivers them, so that the next page is
// read while the handler works.
func (p *poll) Read(ctx context.Context, from Checkpoint, out Sink) error {
	t, err := p.open(ctx, from, out)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var readErr error
	go func() {
		defer close(t.batches)
		readErr = t.read(ctx)
	}()
	pruned := make(chan struct{})
	go func() {
		defer close(pruned)
		if t.prune != nil {
			t.prune.run(ctx, out)
		}
	}()
	err = t.deliver(ctx)
	cancel()
	for range t.batches { // discard batches until the goroutine that reads has ended
	}
	<-pruned
	if err == nil {
		err = readErr
	}
	return err
}

// tail holds the state of a running poll.
type tail struct {
	*poll
	out    Sink
	query  *pageQuery
	rows   rowReader
	commit string // the commit-timestamp column
	// trusted is true if the commit-timestamp column has the option allow_commit_timestamp. Rows that a read did not
	// see can then only get later timestamps.
	trusted bool
	check   *tableCheck
	sets    *changeSetReader // nil if the table is not watched through change sets
	prune   *pruner

	position position
	columns  string       // the columns of position.Key, as keyOrder.text returns them
	open     *Transaction // the last transaction that was read; the next page may have more of its rows
	complete Checkpoint   // the checkpoint that follows the last transaction in the field batch
	batch    batch
	batchLen int // the number of rows in the field batch
	most     int // the largest number of bytes in a page
	commitAt int
	clock    clock
	newest   time.Time // the timestamp of the last read
	readAt   time.Time // when the last read ended, by this machine's clock

	batches chan batch
	pages   chan struct{} // holds one value for each page that was begun and not yet delivered
}

// batch holds transactions that the reading goroutine sends to the delivering one.
type batch struct {
	list  []*Transaction
	after []Checkpoint // the checkpoint that follows each transaction in list
	// through is the checkpoint that follows the whole batch. It also covers change sets that the handler does not get,
	// because all their rows were written again later.
	through Checkpoint
	ends    bool      // the batch is the last one of its page
	drained time.Time // the timestamp at which the page was read, if no rows follow the page; else zero
	// idle, if not zero, is a checkpoint at the timestamp of the field drained. It is set only if no row can get this
	// or an earlier commit timestamp any more. With it, the checkpoint moves although the table has no changes.
	idle Checkpoint
}

// open reads the table's columns from the database and builds the query for pages.
func (p *poll) open(ctx context.Context, from Checkpoint, out Sink) (*tail, error) {
	table, o := p.table, p.o
	if c := o.ChangeSets; c != nil {
		if o.PruneAfter > 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "Cannot prune table %s: it is watched through change sets", p.table)
		}
		table, o.Columns, o.CommitTimestamp, o.Hint = c.tableID(p.table.Database), []string{c.idColumn()}, c.commitColumn(), c.Hint
	}
	d, err := describe(ctx, p.client, table)
	if err != nil {
		return nil, err
	}
	commit, err := d.commitTimestamp(o.CommitTimestamp)
	if err != nil {
		return nil, err
	}
	columns, err := d.selectList(o.Columns, commit)
	if err != nil {
		return nil, err
	}
	t := &tail{poll: p, out: out, commit: commit, trusted: slices.Contains(d.commits, commit), newest: d.read, readAt: time.Now(), complete: from, most: maxPageBytes}
	t.query = newPageQuery(d, commit, columns, o)
	t.rows, t.check, t.columns = rowReader{table: d.id, names: d.keyNames()}, newTableCheck(p.client, d), t.query.key.text()
	if t.position, err = newPosition(from, t.query.key); err != nil {
		return nil, err
	}
	if c := o.ChangeSets; c != nil {
		id, err := d.column(c.idColumn())
		if err != nil {
			return nil, err
		}
		if t.sets, err = p.newChangeSetReader(ctx, id); err != nil {
			return nil, err
		}
	} else if o.PruneAfter > 0 {
		if t.prune, err = newPruner(p, d, commit); err != nil {
			return nil, err
		}
	}
	t.pages = make(chan struct{}, aheadPages)
	t.batches = make(chan batch, aheadPages*(o.Limit/batchRows+2)) // large enough that reading a page never has to wait for the handler
	return t, nil
}

// read polls until ctx ends or a poll fails.
func (t *tail) read(ctx context.Context) error {
	interval := t.interval
	for {
		start := time.Now()
		n, err := t.poll1(ctx)
		if err != nil {
			return err
		}
		interval = t.next(interval, n)
		select {
		case <-time.After(time.Until(start.Add(interval))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next returns the interval to the next poll, after a poll that found the given number of rows.
func (p *poll) next(interval time.Duration, rows int) time.Duration {
	if rows > 0 {
		return p.interval
	}
	return min(interval+interval/2, p.max)
}

// poll1 reads pages until a page is not full. It reads them at one timestamp, and takes a new timestamp after each
// maxReadAge. It returns the number of rows read.
func (t *tail) poll1(ctx context.Context) (int, error) {
	all, began := 0, time.Time{}
	for {
		if t.position.Key != nil { // the page begins after a key, so the table must still have these key columns
			if err := t.check.check(ctx, t.newest); err != nil {
				return all, err
			}
		}
		select {
		case t.pages <- struct{}{}:
		case <-ctx.Done():
			return all, ctx.Err()
		}
		bound := spanner.ReadTimestamp(t.newest)
		if time.Since(began) > maxReadAge {
			bound, began = spanner.StrongRead(), time.Now()
		}
		r, left := Reading{}, t.most
		if all == 0 {
			r.Polls = 1
		}
		start := time.Now()
		ro := t.client.Single().WithTimestampBound(bound)
		err := query(ctx, ro, t.query.statement(t.position, t.now()), t.o.RequestTag, t.begin, func(row *spanner.Row) error {
			if r.Rows++; r.Rows == 1 {
				t.newest, _ = ro.Timestamp()
				if err := t.check.checkNowAndThen(ctx, t.newest); err != nil {
					return err
				}
			}
			if left -= rowBytes(row); left < 0 {
				return cmp.Or(t.add(row), errPageEnds)
			}
			return t.add(row)
		})
		ends := err == errPageEnds
		if err != nil && !ends {
			return all, err
		}
		if r.Timestamp, err = ro.Timestamp(); err != nil {
			return all, err
		}
		t.newest, t.readAt, r.Duration = r.Timestamp, time.Now(), time.Since(start)
		t.out.Observe(r)
		all += r.Rows
		full := ends || r.Rows >= t.query.limit
		if t.endPage(full); !full {
			return all, nil
		}
	}
}

// now estimates the database's current time.
func (t *tail) now() time.Time { return t.newest.Add(time.Since(t.readAt)) }

func (t *tail) begin(m *spannerpb.ResultSetMetadata) error {
	if err := t.rows.begin(m); err != nil {
		return err
	}
	t.commitAt = Row{Columns: t.rows.columns}.Index(t.commit)
	if t.commitAt < 0 {
		return fmt.Errorf("a row of table %s comes without its commit timestamp %s", t.rows.table, t.commit)
	}
	return nil
}

// add adds a row to the transaction that has the row's commit timestamp.
func (t *tail) add(row *spanner.Row) error {
	commit, err := t.clock.parse(row.ColumnValue(t.commitAt))
	if err != nil {
		return err
	}
	if t.open != nil && !t.open.CommitTimestamp.Equal(commit) {
		t.close()
		if t.batchLen >= batchRows {
			t.flush(batch{})
		}
	}
	if t.open != nil && len(t.open.Changes) == MaxTransactionChanges {
		t.open.Partial = true
		t.put(Checkpoint{t.complete.Timestamp, t.position.text()})
	}
	if t.open == nil {
		t.open = &Transaction{CommitTimestamp: commit}
	}
	c := t.rows.change(row, commit)
	t.open.Changes = append(t.open.Changes, c)
	t.position = position{commit, t.pageKey(c.Key), t.columns}
	return nil
}

// pageKey returns the key's values without the commit timestamp, if that is part of the key.
func (t *tail) pageKey(key Row) []*structpb.Value {
	if len(t.query.key) == len(key.Values) {
		return key.Values
	}
	var list []*structpb.Value
	for i, v := range key.Values {
		if key.Columns[i].Name != t.commit {
			list = append(list, v)
		}
	}
	return list
}

// close moves the transaction in t.open to the batch, because all rows of the transaction were read.
func (t *tail) close() {
	if t.open != nil {
		t.complete = Checkpoint{Timestamp: t.open.CommitTimestamp}
		t.put(t.complete)
	}
}

func (t *tail) put(after Checkpoint) {
	t.batch.list, t.batch.after = append(t.batch.list, t.open), append(t.batch.after, after)
	t.batch.through = after
	t.batchLen += len(t.open.Changes)
	t.open = nil
}

// endPage sends the complete transactions of a page to the goroutine that delivers. If the page was not full, the
// transaction in t.open is complete, too.
func (t *tail) endPage(full bool) {
	end := batch{ends: true}
	if !full {
		t.close()
		end.drained = t.newest
		t.position.Key = nil
		if t.trusted && t.newest.After(t.position.Timestamp) {
			t.position.Timestamp = t.newest
			t.complete = Checkpoint{Timestamp: t.newest}
			end.idle = t.complete
		}
	}
	t.flush(end)
}

// flush sends the current batch to the goroutine that delivers. It takes the fields ends, drained and idle of the batch
// from end.
func (t *tail) flush(end batch) {
	b := t.batch
	b.ends, b.drained, b.idle = end.ends, end.drained, end.idle
	t.batch, t.batchLen = batch{}, 0
	for _, tx := range b.list {
		tx.ReadTimestamp = t.newest
	}
	t.batches <- b
}

// deliver gives batches to the handler until the goroutine that reads ends.
func (t *tail) deliver(ctx context.Context) error {
	var stored time.Time
	hand := t.hand
	if t.sets != nil {
		hand = func(ctx context.Context, list []*Transaction, after []Checkpoint) error {
			return t.sets.deliver(ctx, list, after, t.hand)
		}
	}
	for b := range t.batches {
		if err := hand(ctx, b.list, b.after); err != nil {
			return err
		}
		if !b.through.Timestamp.IsZero() {
			t.out.Checkpoint(b.through)
			stored = b.through.Timestamp
		}
		if b.idle.Timestamp.Sub(stored) > idleCheckpoint {
			t.out.Checkpoint(b.idle)
			stored = b.idle.Timestamp
		}
		if b.ends {
			<-t.pages
		}
		if !b.drained.IsZero() {
			t.out.Delivered(b.drained)
		}
	}
	return nil
}

// hand gives transactions to the handler and moves the checkpoint. The parameter after has the checkpoint that follows
// each transaction. It is nil for a part of a large change set that is not the last part; then the checkpoint does not
// move.
func (t *tail) hand(ctx context.Context, list []*Transaction, after []Checkpoint) error {
	n, err := t.out.Deliver(ctx, list)
	if n > 0 && len(after) > 0 {
		t.out.Checkpoint(after[n-1])
	}
	return err
}
