package server

import (
	"context"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// answerCall runs CALL procedure(arguments). The statement's plan returns one row, whose columns are the values of the
// arguments.
func (s *service) answerCall(ctx context.Context, q queryRequest, sc *scope, stmt *prepare.Statement, params []value.Value, answer func(*result.Result) error) error {
	args, err := arguments(ctx, sc, stmt, params, q)
	if err != nil {
		return err
	}
	switch stmt.Procedure {
	case "cancel_query":
		id := ""
		if !args[0].IsNull() {
			id = args[0].AsString()
		}
		if !sc.session.db.Live().CancelQuery(id) {
			return usererror.QueryNotFound(id)
		}
	default:
		return usererror.SQLUnimplemented("Procedure " + stmt.Procedure)
	}
	return answer(&result.Result{Transaction: &sc.reply})
}

// arguments runs the statement's plan, which returns one row, and returns the values of that row.
func arguments(ctx context.Context, sc *scope, stmt *prepare.Statement, params []value.Value, q queryRequest) ([]value.Value, error) {
	rows, err := stmt.Run(ctx, prepare.Run{View: sc.view(), Params: params, Memory: &q.call.Rows}, q.call.Cost.Began)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if _, err := rows.Next(); err != nil {
		return nil, err
	}
	return rows.Values(nil), nil
}
