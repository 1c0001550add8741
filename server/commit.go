package server

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/fault"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// commit answers Commit: of a transaction, or of mutations alone.
func (s *Server) commit(ctx context.Context, req *spannerpb.CommitRequest) (*spannerpb.CommitResponse, error) {
	ses, err := s.session(req.Session)
	if err != nil {
		return nil, err
	}
	if err := checkRequestOptions(req.RequestOptions); err != nil {
		return nil, err
	}
	delay, err := commitDelay(req.MaxCommitDelay)
	if err != nil {
		return nil, err
	}
	switch sel := req.Transaction.(type) {
	case *spannerpb.CommitRequest_SingleUseTransaction:
		return s.commitSingleUse(ctx, ses, req, sel.SingleUseTransaction, delay)
	case *spannerpb.CommitRequest_TransactionId:
		return s.commitTransaction(ctx, ses, req, sel.TransactionId, delay)
	}
	return nil, fault.MissingField("transaction")
}

// commitWork is what one commit adds to a transaction: the mutations that came with it.
type commitWork struct {
	catalog *schema.Catalog
	list    []*spannerpb.Mutation
	now     time.Time
	count   int64 // of mutations, once applied
}

// apply adds the mutations. It runs inside the commit, so that bad ones make it fail like broken constraints.
func (c *commitWork) apply(ctx context.Context) func(table.Writer) error {
	if len(c.list) == 0 {
		return nil
	}
	return func(w table.Writer) error {
		muts, err := mutations(c.catalog, c.list)
		if err != nil {
			return err
		}
		c.count, err = table.Apply(ctx, w, muts, c.now)
		return err
	}
}

func (s *Server) commitSingleUse(ctx context.Context, ses *session, req *spannerpb.CommitRequest, o *spannerpb.TransactionOptions, delay time.Duration) (*spannerpb.CommitResponse, error) {
	if err := checkTransactionOptions(o); err != nil {
		return nil, err
	}
	if o.GetReadWrite() == nil {
		return nil, fault.SingleUseCommitKind()
	}
	tx := ses.db.Transactions().Begin(s.txnOptions(ses, o, req.RequestOptions.GetTransactionTag()))
	work := commitWork{catalog: ses.db.Catalog(), list: req.Mutations, now: s.cfg.Clock()}
	at, err := tx.Commit(ctx, work.apply(ctx), txn.CommitOptions{MaxDelay: delay})
	if err != nil {
		tx.Rollback()
		return nil, err
	}
	return commitReply(at, req, work.count, tx.Options()), nil
}

func (s *Server) commitTransaction(ctx context.Context, ses *session, req *spannerpb.CommitRequest, id []byte, delay time.Duration) (*spannerpb.CommitResponse, error) {
	if len(id) > 0 && id[0] == readOnlyID {
		return nil, fault.NotReadWrite("commit", "read-only")
	}
	t, err := s.transaction(ses, id)
	if err != nil {
		return nil, err
	}
	if t.partitioned {
		return nil, fault.NotReadWrite("commit", "partitioned DML")
	}
	if err := t.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer t.giveTurn()
	tx, outcome := t.current()
	if outcome != nil {
		if reply := t.committed(); reply != nil {
			return reply, nil
		}
		return nil, outcome
	}
	work := commitWork{catalog: t.catalog, list: req.Mutations, now: s.cfg.Clock()}
	at, err := tx.Commit(ctx, work.apply(ctx), txn.CommitOptions{MaxDelay: delay})
	if err != nil {
		t.settle()
		return nil, err
	}
	reply := commitReply(at, req, t.mutations+work.count, tx.Options())
	t.end(fault.TransactionCommitted(), reply)
	return reply, nil
}

// committed is what the transaction's Commit was answered, nil if there was none.
func (t *transaction) committed() *spannerpb.CommitResponse {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reply
}

func commitReply(at mvcc.Timestamp, req *spannerpb.CommitRequest, count int64, o txn.Options) *spannerpb.CommitResponse {
	reply := &spannerpb.CommitResponse{CommitTimestamp: timestamppb.New(at.Time())}
	if req.ReturnCommitStats {
		reply.CommitStats = &spannerpb.CommitResponse_CommitStats{MutationCount: count}
	}
	if o.Isolation == txn.RepeatableRead {
		reply.IsolationLevel = spannerpb.TransactionOptions_REPEATABLE_READ
	}
	return reply
}
