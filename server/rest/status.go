package rest

import (
	"encoding/json"
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crowfoot-db/crowfoot/server/status"
)

// errorBody returns an error as JSON in the form of Google's APIs: {"error": {"code", "message", "status", "details"}}.
func errorBody(err error) []byte {
	st := status.Of(err)
	type body struct {
		Code    int               `json:"code"`
		Message string            `json:"message"`
		Status  string            `json:"status"`
		Details []json.RawMessage `json:"details,omitempty"`
	}
	b := body{Code: HTTPStatus(err), Message: st.Message, Status: code.Code(st.Code).String()}
	for _, d := range st.Details {
		if detail, err := protojson.Marshal(d); err == nil {
			b.Details = append(b.Details, detail)
		}
	}
	data, jsonErr := json.Marshal(map[string]body{"error": b})
	if jsonErr != nil {
		return []byte(`{"error":{"code":500,"message":"An internal error occurred.","status":"INTERNAL"}}`)
	}
	return data
}

// HTTPStatus returns the HTTP status for the code of an error:
// https://cloud.google.com/apis/design/errors#handling_errors.
func HTTPStatus(err error) int {
	switch status.Code(err) {
	case codes.OK:
		return http.StatusOK
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.Aborted, codes.AlreadyExists:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Canceled:
		return 499
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}
