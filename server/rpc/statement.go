package rpc

import (
	"context"
	"errors"

	"github.com/crowfoot-db/crowfoot/stats/live"
)

// A statement is the SQL statement that a call is running. SPANNER_SYS.OLDEST_ACTIVE_QUERIES lists it, and users can
// cancel it with cancel_query.
type statement struct {
	active live.Query
	ctx    context.Context // nil if users cannot cancel the statement
	cancel context.CancelCauseFunc
}

// StartStatement adds q to the list of running statements. If cancellable is set, the caller must run the statement
// under the returned context. The caller must call StopStatement.
//
// Pass false for brief statements that wait for no other transaction: they end before a user could cancel them.
func (c *Call) StartStatement(ctx context.Context, in *live.Lists, q live.Query, cancellable bool) context.Context {
	s := &c.statement
	s.active = q
	s.active.Start = c.Cost.Began
	if cancellable {
		s.active.ClientAddress, s.active.APIClient, s.active.UserAgent = c.Peer(), c.Metadata(apiClientKey), c.Metadata(userAgentKey)
		s.ctx, s.cancel = context.WithCancelCause(ctx)
		s.active.Cancel = s.cancel
		ctx = s.ctx
	}
	in.Start(&s.active)
	return ctx
}

// StopStatement removes the statement, which ended with err, from the list of running statements. It returns the error
// for the client: context.Canceled if a user cancelled the statement, else err.
func (c *Call) StopStatement(err error) error {
	s := &c.statement
	s.active.Finish()
	if s.cancel == nil {
		return err
	}
	if err != nil && errors.Is(context.Cause(s.ctx), live.ErrCancelled) {
		err = context.Canceled
	}
	s.cancel(nil)
	s.ctx, s.cancel = nil, nil
	return err
}
