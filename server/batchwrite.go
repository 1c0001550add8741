package server

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// batchAttempts is the largest number of times that a group of mutations is tried. If other transactions aborted every
// attempt, the client gets ABORTED.
const batchAttempts = 8

// batchWrite answers BatchWrite. Each group of mutations is committed by a transaction of its own.
func (s *service) batchWrite(ctx context.Context, req *spannerpb.BatchWriteRequest, c *rpc.Call) error {
	ses, err := s.sessions.find(req.Session)
	if err != nil {
		return err
	}
	ses.begin()
	defer ses.end()
	if err := checkRequestOptions(req.RequestOptions); err != nil {
		return err
	}
	if len(req.MutationGroups) == 0 {
		return usererror.MissingField("mutation_groups")
	}
	for i, g := range req.MutationGroups {
		c.Cost.AddMutations(rowsOf(g.GetMutations()))
		at, err := s.writeGroup(ctx, ses, req, g, c)
		if err := ctx.Err(); err != nil {
			return err
		}
		reply := &spannerpb.BatchWriteResponse{Indexes: []int32{int32(i)}}
		if err != nil {
			reply.Status = status.Of(err)
			if !status.IsForUser(err) {
				c.Failure = err
			}
		} else {
			reply.Status = status.Of(nil)
			reply.CommitTimestamp = timestamppb.New(at.Time())
		}
		if err := c.Send(reply); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) writeGroup(ctx context.Context, ses *session, req *spannerpb.BatchWriteRequest, g *spannerpb.BatchWriteRequest_MutationGroup, c *rpc.Call) (at mvcc.Timestamp, err error) {
	if len(g.GetMutations()) == 0 {
		return 0, usererror.MissingField("mutations")
	}
	opts := txn.Options{Tag: stats.Tag(req.RequestOptions.GetTransactionTag()), Memory: s.transactions.budget, Excluded: req.ExcludeTxnFromChangeStreams}
	for range batchAttempts {
		a := new(attempt)
		now := s.clock()
		a.begin(ses.db, &opts, now)
		a.commit(now)
		tx := ses.db.Transactions().Begin(opts)
		work := commitWork{record: &c.Cost, mutations: resolving(g.Mutations), rows: rowsOf(g.Mutations), now: now, role: ses.stored.Role, attempt: a, turns: s.turns}
		at, err = work.commit(ctx, tx, txn.CommitOptions{})
		a.end(tx, s.clock(), err)
		if err == nil {
			work.done(tx, s.clock())
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
