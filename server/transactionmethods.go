package server

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// begin answers BeginTransaction.
func (s *service) begin(ctx context.Context, req *spannerpb.BeginTransactionRequest, c *rpc.Call) (reply *spannerpb.Transaction, err error) {
	ses, err := s.sessions.find(req.Session)
	if err != nil {
		return nil, err
	}
	if err := checkRequestOptions(req.RequestOptions); err != nil {
		return nil, err
	}
	if req.MutationKey != nil && req.Options.GetReadWrite() == nil {
		return nil, usererror.UnexpectedMutationKey()
	}
	if req.MutationKey != nil {
		if _, err := mutation(ses.db.Catalog(), req.MutationKey); err != nil {
			return nil, usererror.InMutationKey(err)
		}
	}
	sc, err := s.openScope(ctx, scopeRequest{
		session:  ses,
		selector: &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{Begin: req.Options}},
		tag:      req.RequestOptions.GetTransactionTag(),
	})
	defer func() { sc.close(err) }()
	if err != nil {
		return nil, err
	}
	return sc.reply.Proto(), nil
}

// errRolledBack is the outcome of a transaction that its client has rolled back.
var errRolledBack error = usererror.TransactionRolledBack()

// rollback answers Rollback. It also succeeds if the transaction was aborted or already rolled back, or if no
// transaction has this id. It fails if the transaction was committed.
func (s *service) rollback(ctx context.Context, req *spannerpb.RollbackRequest) (*emptypb.Empty, error) {
	ses, err := s.sessions.find(req.Session)
	if err != nil {
		return nil, err
	}
	t, err := s.transactions.find(ses, req.TransactionId)
	if err != nil {
		if len(req.TransactionId) > 0 && req.TransactionId[0] == readOnlyID {
			return nil, usererror.NotReadWrite("rollback", "read-only")
		}
		if len(req.TransactionId) == 0 {
			return nil, usererror.MissingField("transaction_id")
		}
		return &emptypb.Empty{}, nil
	}
	if t.partitioned {
		return nil, usererror.NotReadWrite("rollback", "partitioned DML")
	}
	open, outcome := t.current()
	if outcome != nil {
		if t.known() != nil {
			return nil, usererror.RollbackAfterCommit()
		}
		return &emptypb.Empty{}, nil
	}
	if err := open.tx.Rollback(); err != nil {
		return nil, err
	}
	t.end(errRolledBack, nil)
	return &emptypb.Empty{}, nil
}
