package server

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/timestamppb"

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

// commit answers Commit. If the request names no transaction, it creates one for the request's mutations.
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

// commitWork is the work of one Commit request: its mutations, with the statistics about them.
type commitWork struct {
	record *cost.Recorder
	memory *memory.Account // the request's account in the memory budget; nil for BatchWrite
	// mutations converts the request's mutations. It looks up the names of their tables and columns in a catalog. It
	// can be called only once (see takeMutations), and is nil if the request has no mutations. rows is the number of
	// rows, or key ranges, in the mutations.
	mutations func(*schema.Catalog) ([]table.Mutation, error)
	rows      int64
	now       time.Time
	role      string // role of the session
	// count is the number of mutations as commit_stats counts them. At first it counts the mutations that the
	// transaction's statements have made. After the request's mutations have been applied, it also counts these.
	count   int64
	attempt *attempt
	// turns limits how many commits with many rows are applied at the same time.
	turns *cpu.Turns
	// accesses holds, without duplicates, the tables and columns that the mutations access.
	accesses []*stats.Access
}

// commit applies the mutations to the transaction tx and commits it.
func (c *commitWork) commit(ctx context.Context, tx *txn.Tx, o txn.CommitOptions) (mvcc.Timestamp, error) {
	if half := c.memory.Used() / 2; half > memory.FreeBytes {
		// Half of what the request was charged for its message is meant for the writes that the message becomes.
		tx.Prepay(c.memory, half)
	}
	o.Memory = c.memory
	before := tx.Stats().LockWait
	at, err := tx.Commit(ctx, c.apply(ctx, tx), o)
	c.record.AddCommitWait(tx.Stats().LockWait - before)
	return at, err
}

// apply returns a function that applies the mutations to the transaction. Tx.Commit calls this function, so that a bad
// mutation ends the transaction as a broken constraint does. apply returns nil if there are no mutations.
func (c *commitWork) apply(ctx context.Context, tx *txn.Tx) func(table.Writer) error {
	if c.mutations == nil {
		return nil
	}
	return func(w table.Writer) error {
		ctx, end, err := c.acquireSlot(ctx)
		if err != nil {
			return err
		}
		defer end()
		catalog := c.attempt.db.Catalog()
		muts, err := c.mutations(catalog)
		if err != nil {
			return err
		}
		if c.accesses, err = c.attempt.db.Admit(ctx, tx, catalog, c.role, muts); err != nil {
			return err
		}
		// The attempt must know which columns the mutations access before the mutations wait for locks, because the
		// statistics of locks name these columns.
		for _, a := range c.accesses {
			c.attempt.Touch(a)
		}
		tables, err := c.attempt.db.Tables(catalog)
		if err != nil {
			return err
		}
		changes, err := table.Apply(ctx, w, tables, muts, c.now)
		c.count += changes.Count()
		c.attempt.wrote(changes.Written())
		return err
	}
}

// manyRows is the smallest number of rows with which a commit must wait for a slot of commitWork.turns. Such a commit
// computes for a long time: applying a row takes about 10 us.
const manyRows = 100

// acquireSlot waits for a slot of c.turns, in which the mutations may be applied. A commit of fewer than manyRows rows
// does not wait. The caller must apply the mutations with the context slotCtx, and then free the slot by calling end.
func (c *commitWork) acquireSlot(ctx context.Context) (slotCtx context.Context, end func(), err error) {
	if c.rows < manyRows {
		return ctx, func() {}, nil
	}
	return c.turns.Acquire(ctx)
}

// done runs after the commit. It records the mutations' accesses to tables, and the splits to which the transaction
// wrote.
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

// commitOnce commits mutations in a new transaction that does nothing else.
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
	if err := t.acquire(ctx); err != nil {
		return nil, err
	}
	defer t.release()
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

// takeMutations removes the mutations from the request, so that their memory can be collected once the returned
// function has converted them.
func takeMutations(req *spannerpb.CommitRequest) func(*schema.Catalog) ([]table.Mutation, error) {
	list := req.Mutations
	req.Mutations = nil
	return resolving(list)
}

// resolving returns a function that converts the mutations and drops its reference to them. So the function can be
// called only once. If there are no mutations, resolving returns nil.
func resolving(list []*spannerpb.Mutation) func(*schema.Catalog) ([]table.Mutation, error) {
	if len(list) == 0 {
		return nil
	}
	return func(catalog *schema.Catalog) ([]table.Mutation, error) {
		once := list
		list = nil // so that the garbage collector can free the mutations, which may be large, once they are converted
		return mutations(catalog, once)
	}
}

// rowsOf returns the number of rows, or key ranges, in mutations.
func rowsOf(list []*spannerpb.Mutation) int64 {
	n := 0
	for _, m := range list {
		n += len(m.GetInsert().GetValues()) + len(m.GetUpdate().GetValues()) + len(m.GetInsertOrUpdate().GetValues()) + len(m.GetReplace().GetValues())
		deleted := m.GetDelete().GetKeySet()
		n += len(deleted.GetKeys()) + len(deleted.GetRanges())
	}
	return int64(n)
}

// known returns the outcome of the transaction's Commit, or nil if the transaction has not been committed.
func (t *transaction) known() *txn.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.committed
}

// outcome returns the outcome of a successful Commit.
func (c *commitWork) outcome(at mvcc.Timestamp, tx *txn.Tx) txn.Outcome {
	return txn.Outcome{Timestamp: at, Mutations: c.count, Isolation: tx.Options().Isolation}
}

// commitReply returns the reply to a Commit with the outcome o. The reply depends on req too, because a Commit that is
// sent again may ask for statistics that the first one did not ask for.
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
