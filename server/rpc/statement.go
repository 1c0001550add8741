package rpc

import (
	"context"
	"errors"

	"github.com/crowfoot-db/crowfoot/stats/live"
)

// A statement is the SQL statement that a call runs at the moment: it is listed in SPANNER_SYS.OLDEST_ACTIVE_QUERIES, and users
// may cancel it by cancel_query.
type statement struct {
	active live.Query
	ctx    context.Context // nil if it cannot be cancelled
	cancel context.CancelCauseFunc
}

// StartStatement lists q among the statements that run now. If it is cancellable, it runs under the context that is returned.
// StopStatement must follow.
//
// Statements that are brief and wait for no other transaction are not cancellable: they are over before a user could ask.
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

// StopStatement takes the statement, which ended with err, off the list. The error that it returns is to be answered: Cancelled, if
// a user cancelled the statement.
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
