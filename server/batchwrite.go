package server

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// batchAttempts is how often a group is tried that loses to other transactions; the client is then told ABORTED.
const batchAttempts = 8

// batchWrite answers BatchWrite: each group of mutations is a transaction of its own.
func (s *Server) batchWrite(ctx context.Context, req *spannerpb.BatchWriteRequest, out *execution) error {
	ctx = txn.WithMeter(ctx, &out.cpu)
	ses, err := s.session(req.Session)
	if err != nil {
		return err
	}
	if err := checkRequestOptions(req.RequestOptions); err != nil {
		return err
	}
	if len(req.MutationGroups) == 0 {
		return usererror.MissingField("mutation_groups")
	}
	for i, g := range req.MutationGroups {
		out.writes(g.GetMutations())
		at, err := s.writeGroup(ctx, ses, req, g, out)
		if err := ctx.Err(); err != nil {
			return err
		}
		reply := &spannerpb.BatchWriteResponse{Indexes: []int32{int32(i)}}
		if err != nil {
			st, _ := statusOf(err)
			reply.Status = st.Proto()
			if !isForUser(err) {
				out.failure = err
			}
		} else {
			reply.Status = &status.Status{}
			reply.CommitTimestamp = timestamppb.New(at.Time())
		}
		if err := out.SendMsg(reply); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) writeGroup(ctx context.Context, ses *session, req *spannerpb.BatchWriteRequest, g *spannerpb.BatchWriteRequest_MutationGroup, e *execution) (at mvcc.Timestamp, err error) {
	if len(g.GetMutations()) == 0 {
		return 0, usererror.MissingField("mutations")
	}
	opts := txn.Options{Tag: stats.Tag(req.RequestOptions.GetTransactionTag())}
	for range batchAttempts {
		a := new(attempt)
		now := s.cfg.Clock()
		a.begin(ses.db, &opts, now)
		a.committing = now
		tx := ses.db.Transactions().Begin(opts)
		work := commitWork{execution: e, catalog: ses.db.Catalog(), list: g.Mutations, now: now, attempt: a}
		at, err = work.commit(ctx, tx, txn.CommitOptions{})
		a.end(tx, s.cfg.Clock(), err)
		if err == nil {
			work.done(tx, s.cfg.Clock())
			return at, nil
		}
		tx.Rollback()
		if !usererror.IsAborted(err) || ctx.Err() != nil {
			break
		}
		opts.Previous = tx.Age()
	}
	return 0, err
}
