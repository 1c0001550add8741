package server

import (
	"context"
	"net"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// answerCall runs CALL procedure(arguments); its plan makes the arguments.
func (s *Server) answerCall(ctx context.Context, q queryRequest, sc *scope, stmt *database.Statement, params []value.Value, answer func(*result) error) error {
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
	return answer(&result{scope: sc})
}

// arguments are those of a CALL.
func arguments(ctx context.Context, sc *scope, stmt *database.Statement, params []value.Value, q queryRequest) ([]value.Value, error) {
	rows, err := stmt.Run(ctx, database.Run{View: sc.view(), Params: params}, q.began)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if _, err := rows.Next(); err != nil {
		return nil, err
	}
	return rows.Values(nil), nil
}

// caller is who sent a request, as far as is known.
func caller(ctx context.Context) (address, apiClient, userAgent string) {
	if p, ok := peer.FromContext(ctx); ok {
		address = p.Addr.String()
		if host, _, err := net.SplitHostPort(address); err == nil {
			address = host
		}
	}
	return address, header(ctx, "x-goog-api-client"), header(ctx, "user-agent")
}

func header(ctx context.Context, name string) string {
	return strings.Join(metadata.ValueFromIncomingContext(ctx, name), " ")
}
