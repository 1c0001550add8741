package server

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/server/cost"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// commit answers Commit, of a transaction that the request names or of one made for the request's mutations.
func (s *service) commit(ctx context.Context, req *spannerpb.CommitRequest, c *rpc.Call) (*spannerpb.CommitResponse, error) {
	c.Cost.AddMutations(rowsOf(req.Mutations))
	ses, err := s.sessions.find(req.Session)
	if err != nil {
		return nil, err
	}
	ses.begin()
	defer ses.end()
	if err := checkRequestOptions(req.RequestOptions); err != nil {
		return nil, err
	}
	delay, err := commitDelay(req.MaxCommitDelay)
	if err != nil {
		return nil, err
	}
	switch sel := req.Transaction.(type) {
	case *spannerpb.CommitRequest_SingleUseTransaction:
		return s.commitSingleUse(ctx, ses, req, sel.SingleUseTransaction, delay, c)
	case *spannerpb.CommitRequest_TransactionId:
		return s.commitTransaction(ctx, ses, req, sel.TransactionId, delay, c)
	}
	return nil, usererror.MissingField("transaction")
}

// commitWork is the mutations that one Commit request brings, and what is recorded of them.
type commitWork struct {
	record  *cost.Recorder
	memory  *memory.Account // of the request
	catalog *schema.Catalog // the newest one when the mutations were applied
	// mutations resolves what the request brings in a catalog, once; nil if it brings nothing. rows is how many rows, or ranges of them, it names.
	mutations func(*schema.Catalog) ([]table.Mutation, error)
	rows      int64
	now       time.Time
	role      string // of the session
	count     int64  // of mutations as commit_stats counts them: of statements, and, once they are applied, of the list
	attempt   *attempt
	// turns are those in which commits of many rows are applied.
	turns *cpu.Turns
	// accesses are what the mutations do with tables, without repetitions.
	accesses []*stats.Access
}

// commit commits the transaction with the mutations.
func (c *commitWork) commit(ctx context.Context, tx *txn.Tx, o txn.CommitOptions) (mvcc.Timestamp, error) {
	if half := c.memory.Used() / 2; half > memory.FreeBytes {
		tx.Prepay(c.memory, half) // it was charged for the message, and for what is written of it
	}
	o.Memory = c.memory
	before := tx.Stats().LockWait
	at, err := tx.Commit(ctx, c.apply(ctx, tx), o)
	c.record.AddCommitWait(tx.Stats().LockWait - before)
	return at, err
}

// apply adds the mutations to the transaction. The commit calls it, so that a bad mutation ends the transaction as a broken constraint does.
func (c *commitWork) apply(ctx context.Context, tx *txn.Tx) func(table.Writer) error {
	if c.mutations == nil {
		return nil
	}
	return func(w table.Writer) error {
		ctx, end, err := c.turn(ctx)
		if err != nil {
			return err
		}
		defer end()
		c.catalog = c.attempt.db.Catalog()
		muts, err := c.mutations(c.catalog)
		if err != nil {
			return err
		}
		if err := c.touch(ctx, tx, muts); err != nil {
			return err
		}
		tables, err := c.attempt.db.Tables(c.catalog)
		if err != nil {
			return err
		}
		changes, err := table.Apply(ctx, w, tables, muts, c.now)
		c.count += changes.Count()
		c.attempt.wrote(changes.Written())
		return err
	}
}

// manyRows is from how many rows on a commit computes for long: a row takes about 10 us.
const manyRows = 100

// turn waits until the mutations may be applied: at once if they are few.
func (c *commitWork) turn(ctx context.Context) (turn context.Context, end func(), err error) {
	if c.rows < manyRows {
		return ctx, func() {}, nil
	}
	return c.turns.Take(ctx)
}

// touch notes what the mutations do with tables, and what of the schema they depend on. Consecutive mutations mostly have the same
// operation, table and columns, and are looked up once.
func (c *commitWork) touch(ctx context.Context, tx *txn.Tx, muts []table.Mutation) error {
	for i := range muts {
		m := &muts[i]
		if i > 0 {
			if p := &muts[i-1]; p.Op == m.Op && p.Table == m.Table && slices.Equal(p.Columns, m.Columns) {
				continue
			}
		}
		like := c.attempt.db.Mutations(c.catalog, m)
		if !slices.Contains(c.accesses, like.Access) {
			c.accesses = append(c.accesses, like.Access)
		}
		if err := tx.DependOn(ctx, like.Dependencies(m.Op), c.catalog); err != nil {
			return err
		}
		if err := c.allow(ctx, tx, like.Needs(m.Op)); err != nil {
			return err
		}
	}
	for _, a := range c.accesses {
		c.attempt.Touch(a)
	}
	return nil
}

// allow checks that the session's role has what mutations need.
func (c *commitWork) allow(ctx context.Context, tx *txn.Tx, n *database.Needs) error {
	if c.role == "" {
		return nil
	}
	d, err := c.attempt.db.Allow(c.role, n)
	if err != nil {
		return err
	}
	return tx.DependOn(ctx, d, c.catalog)
}

// done counts, after the commit, what the mutations did with tables and which splits the transaction wrote in.
func (c *commitWork) done(tx *txn.Tx, now time.Time) {
	c.record.AddCommit(c.attempt.db, tx)
	if len(c.accesses) > 0 {
		c.attempt.db.Stats().Operations(now, c.accesses)
	}
}

func (s *service) commitSingleUse(ctx context.Context, ses *session, req *spannerpb.CommitRequest, o *spannerpb.TransactionOptions, delay time.Duration, c *rpc.Call) (*spannerpb.CommitResponse, error) {
	if err := checkTransactionOptions(o); err != nil {
		return nil, err
	}
	if o.GetReadWrite() == nil {
		return nil, usererror.SingleUseCommitKind()
	}
	opts := s.transactions.options(ses, o, req.RequestOptions.GetTransactionTag())
	outcome, err := s.commitOnce(ctx, ses, opts, rowsOf(req.Mutations), takeMutations(req), delay, c)
	if err != nil {
		return nil, err
	}
	return commitReply(outcome, req), nil
}

// commitOnce commits mutations in a transaction of their own.
func (s *service) commitOnce(ctx context.Context, ses *session, opts txn.Options, rows int64, muts func(*schema.Catalog) ([]table.Mutation, error), delay time.Duration, c *rpc.Call) (o txn.Outcome, err error) {
	var a attempt
	now := s.clock()
	a.begin(ses.db, &opts, now)
	a.commit(now)
	tx := ses.db.Transactions().Begin(opts)
	work := commitWork{record: &c.Cost, memory: &c.Memory, mutations: muts, rows: rows, now: now, role: ses.stored.Role, attempt: &a, turns: s.turns}
	at, err := work.commit(ctx, tx, txn.CommitOptions{MaxDelay: delay})
	a.end(tx, s.clock(), err)
	if err != nil {
		tx.Rollback()
		return o, err
	}
	work.done(tx, s.clock())
	return work.outcome(at, tx), nil
}

func (s *service) commitTransaction(ctx context.Context, ses *session, req *spannerpb.CommitRequest, id []byte, delay time.Duration, c *rpc.Call) (*spannerpb.CommitResponse, error) {
	if len(id) > 0 && id[0] == readOnlyID {
		return nil, usererror.NotReadWrite("commit", "read-only")
	}
	t, err := s.transactions.find(ses, id)
	if err != nil {
		return nil, err
	}
	if t.partitioned {
		return nil, usererror.NotReadWrite("commit", "partitioned DML")
	}
	if err := t.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer t.giveTurn()
	t.usage.begin()
	defer t.usage.end()
	open, failure := t.current()
	if failure != nil {
		if known := t.known(); known != nil {
			return commitReply(*known, req), nil
		}
		return nil, failure
	}
	open.tx.SetTag(stats.Tag(req.RequestOptions.GetTransactionTag()))
	now := s.clock()
	open.commit(now)
	work := commitWork{record: &c.Cost, memory: &c.Memory, rows: rowsOf(req.Mutations), mutations: takeMutations(req), now: now, role: ses.stored.Role, attempt: &open.attempt, turns: s.turns, count: open.mutations}
	at, err := work.commit(ctx, open.tx, txn.CommitOptions{MaxDelay: delay, Mutations: &work.count})
	if err != nil {
		t.settle()
		return nil, err
	}
	work.done(open.tx, s.clock())
	outcome := work.outcome(at, open.tx)
	t.end(usererror.TransactionCommitted(), &outcome)
	return commitReply(outcome, req), nil
}

// takeMutations takes the mutations out of a request, so that nothing keeps them once they are values.
func takeMutations(req *spannerpb.CommitRequest) func(*schema.Catalog) ([]table.Mutation, error) {
	list := req.Mutations
	req.Mutations = nil
	return resolving(list)
}

// resolving resolves mutations once, and keeps them no longer; nil if there are none.
func resolving(list []*spannerpb.Mutation) func(*schema.Catalog) ([]table.Mutation, error) {
	if len(list) == 0 {
		return nil
	}
	return func(catalog *schema.Catalog) ([]table.Mutation, error) {
		once := list
		list = nil // a large message is garbage from here on
		return mutations(catalog, once)
	}
}

// rowsOf is how many rows, or ranges of them, mutations name.
func rowsOf(list []*spannerpb.Mutation) int64 {
	n := 0
	for _, m := range list {
		n += len(m.GetInsert().GetValues()) + len(m.GetUpdate().GetValues()) + len(m.GetInsertOrUpdate().GetValues()) + len(m.GetReplace().GetValues())
		deleted := m.GetDelete().GetKeySet()
		n += len(deleted.GetKeys()) + len(deleted.GetRanges())
	}
	return int64(n)
}

// known is what the transaction's Commit did, nil if it was not committed.
func (t *transaction) known() *txn.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.committed
}

// outcome is what a Commit did.
func (c *commitWork) outcome(at mvcc.Timestamp, tx *txn.Tx) txn.Outcome {
	return txn.Outcome{Timestamp: at, Mutations: c.count, Isolation: tx.Options().Isolation}
}

// commitReply answers a Commit, also one that is sent again: it may ask for statistics that the first did not ask for.
func commitReply(o txn.Outcome, req *spannerpb.CommitRequest) *spannerpb.CommitResponse {
	reply := &spannerpb.CommitResponse{CommitTimestamp: timestamppb.New(o.Timestamp.Time())}
	if req.ReturnCommitStats {
		reply.CommitStats = &spannerpb.CommitResponse_CommitStats{MutationCount: o.Mutations}
	}
	if o.Isolation == txn.RepeatableRead {
		reply.IsolationLevel = spannerpb.TransactionOptions_REPEATABLE_READ
	}
	return reply
}
