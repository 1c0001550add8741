package flight

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// beginTransaction begins a read-write transaction.
func (s *Service) beginTransaction(ctx context.Context, _ *flightpb.ActionBeginTransactionRequest, c *rpc.Call) (proto.Message, error) {
	session, err := s.session(c)
	if err != nil {
		return nil, err
	}
	t, err := s.api.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{Session: session, Options: readWrite(nil)}, c)
	if err != nil {
		return nil, err
	}
	handle := &ticket{kind: ticketTransaction, request: &spannerpb.ExecuteSqlRequest{Session: session, Transaction: byID(t.Id)}}
	handle.setConnection(s.connections.began(c, handle.request, s.isOpen))
	sealed, err := handle.seal(s.tokens)
	return &flightpb.ActionBeginTransactionResult{TransactionId: sealed}, err
}

// endTransaction answers EndTransaction: it commits the transaction or rolls it back.
func (s *Service) endTransaction(ctx context.Context, req *flightpb.ActionEndTransactionRequest, c *rpc.Call) (proto.Message, error) {
	t, err := s.openTransaction(req.TransactionId, c)
	if err != nil {
		return nil, err
	}
	session, id := t.request.Session, t.request.Transaction.GetId()
	switch req.Action {
	case flightpb.ActionEndTransactionRequest_END_TRANSACTION_COMMIT:
		_, err = s.commit(ctx, session, id, c)
	case flightpb.ActionEndTransactionRequest_END_TRANSACTION_ROLLBACK:
		err = s.api.Rollback(ctx, &spannerpb.RollbackRequest{Session: session, TransactionId: id})
	default:
		err = usererror.InvalidEnum("action", int32(req.Action))
	}
	return nil, err
}

func (s *Service) openTransaction(handle []byte, c *rpc.Call) (*ticket, error) {
	return openTicket(s.tokens, c, handle, "transaction_id", ticketTransaction)
}

func (s *Service) commit(ctx context.Context, session string, id []byte, c *rpc.Call, mutations ...*spannerpb.Mutation) (*spannerpb.CommitResponse, error) {
	return s.api.Commit(ctx, &spannerpb.CommitRequest{Session: session, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: id}, Mutations: mutations}, c)
}

// commitAttempts is the maximum number of attempts to run a statement without a transaction, or to commit a chunk of a
// bulk load, if other transactions abort it.
const commitAttempts = 8

// inTransaction calls the function do with the transaction that a request names. If the request names none,
// inTransaction begins a transaction, calls the function with it, and commits it. If that transaction is aborted,
// inTransaction tries again with a new one.
func (s *Service) inTransaction(ctx context.Context, req *spannerpb.ExecuteSqlRequest, c *rpc.Call, do func(*spannerpb.TransactionSelector) error) (err error) {
	if req.Transaction.GetId() != nil {
		return do(req.Transaction)
	}
	var previous []byte
	for range commitAttempts {
		t, began := s.api.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{Session: req.Session, Options: readWrite(previous)}, c)
		if began != nil {
			return began
		}
		if err = do(byID(t.Id)); err == nil {
			_, err = s.commit(ctx, req.Session, t.Id, c)
		}
		if err == nil {
			return nil
		}
		// Rollback may fail, because the transaction may have ended already.
		_ = s.api.Rollback(context.WithoutCancel(ctx), &spannerpb.RollbackRequest{Session: req.Session, TransactionId: t.Id})
		if !usererror.IsAborted(err) || ctx.Err() != nil {
			return err
		}
		previous = t.Id
	}
	return err
}

// readWrite returns the options of a read-write transaction. If previous is not nil, it is the id of the aborted
// transaction that the new one retries.
func readWrite(previous []byte) *spannerpb.TransactionOptions {
	return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{
		ReadWrite: &spannerpb.TransactionOptions_ReadWrite{MultiplexedSessionPreviousTransactionId: previous},
	}}
}

func byID(id []byte) *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: id}}
}
