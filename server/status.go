package server

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// retryInfoTrailer is where older clients look for the RetryInfo of ABORTED;
// newer ones read it from the status details.
const retryInfoTrailer = "google.rpc.retryinfo-bin"

// statusOf maps an error to what a client is told: the status with its details,
// and trailers if there are any.
func statusOf(err error) (*status.Status, metadata.MD) {
	var f *usererror.Error
	switch {
	case errors.As(err, &f):
		return statusOfFault(f)
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "The request was cancelled."), nil
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, "Deadline exceeded."), nil
	}
	if st, ok := status.FromError(err); ok { // of the transport
		return st, nil
	}
	return statusOfFault(usererror.Internal())
}

// isForUser says whether statusOf tells the client what err says.
func isForUser(err error) bool {
	var f *usererror.Error
	if errors.As(err, &f) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	_, ok := status.FromError(err)
	return ok
}

func statusOfFault(f *usererror.Error) (*status.Status, metadata.MD) {
	st := status.New(f.Code, strings.ToValidUTF8(f.Message, "\uFFFD"))
	var details []protoadapt.MessageV1
	var trailer metadata.MD
	if f.Resource != nil {
		details = append(details, &errdetails.ResourceInfo{ResourceType: f.Resource.Type, ResourceName: f.Resource.Name, Description: f.Message})
	}
	if f.RetryAfter > 0 {
		retry := &errdetails.RetryInfo{RetryDelay: durationpb.New(f.RetryAfter)}
		details = append(details, retry)
		if b, err := proto.Marshal(retry); err == nil {
			trailer = metadata.Pairs(retryInfoTrailer, string(b))
		}
	}
	if len(details) > 0 {
		if detailed, err := st.WithDetails(details...); err == nil {
			st = detailed
		}
	}
	return st, trailer
}
