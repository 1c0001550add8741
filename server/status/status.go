// Package status converts an error to the reply for the client: google.rpc.Status, which is a canonical code with text
// and details. The package promises that an error which was not made for users becomes INTERNAL without its text.
//
// server/grpc and server/rest send a status in their protocols.
//
// Imports of this module: usererror.
package status

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Of returns the status for the reply to the client. If err is nil, the status is OK.
func Of(err error) *spb.Status {
	if err == nil {
		return &spb.Status{}
	}
	e, ok := forUser(err)
	if !ok {
		e = usererror.Internal()
	}
	return &spb.Status{Code: int32(e.Code), Message: strings.ToValidUTF8(e.Text(), "\uFFFD"), Details: details(e)}
}

// Code returns the canonical code of Of(err).
func Code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if e, ok := forUser(err); ok {
		return e.Code
	}
	return codes.Internal
}

// IsForUser reports whether the client gets the text of err. Any other error is an internal failure of the server.
func IsForUser(err error) bool {
	_, ok := forUser(err)
	return ok
}

// forUser returns the error for users that err is or wraps. For context.Canceled and context.DeadlineExceeded it
// returns the errors for users with the same meaning. It returns false for any other error.
func forUser(err error) (*usererror.Error, bool) {
	if e, ok := usererror.As(err); ok {
		return e, true
	}
	switch {
	case errors.Is(err, context.Canceled):
		return usererror.RequestCancelled(), true
	case errors.Is(err, context.DeadlineExceeded):
		return usererror.DeadlineExceeded(), true
	}
	return nil, false
}

// details returns the ResourceInfo and RetryInfo of the error, if it has them.
func details(e *usererror.Error) (list []*anypb.Any) {
	add := func(m proto.Message) {
		if packed, err := anypb.New(m); err == nil { // cannot fail for the messages that this package makes
			list = append(list, packed)
		}
	}
	if e.Resource != nil {
		add(&errdetails.ResourceInfo{ResourceType: e.Resource.Type, ResourceName: e.Resource.Name, Description: strings.ToValidUTF8(e.Message, "\uFFFD")})
	}
	if e.RetryAfter > 0 {
		add(&errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	return list
}
