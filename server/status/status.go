// Package status maps an error to what a client is told: google.rpc.Status, that is a canonical code with text and details. It promises that an error
// which was not made for users is answered INTERNAL without its text.
//
// It leaves out how a protocol carries a status; server/grpc and server/rest do that.
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

// Of is the status that a client is answered err with; OK for nil.
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

// Code is the canonical code of the status that a client is answered err with.
func Code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if e, ok := forUser(err); ok {
		return e.Code
	}
	return codes.Internal
}

// IsForUser says whether the client is told the text of err. If not, err is a bug of ours.
func IsForUser(err error) bool {
	_, ok := forUser(err)
	return ok
}

// forUser is the error in the chain of err that was made for users.
func forUser(err error) (*usererror.Error, bool) {
	var e *usererror.Error
	switch {
	case errors.As(err, &e):
		return e, true
	case errors.Is(err, context.Canceled):
		return usererror.RequestCancelled(), true
	case errors.Is(err, context.DeadlineExceeded):
		return usererror.DeadlineExceeded(), true
	}
	return nil, false
}

// details are ResourceInfo and RetryInfo, where the error has them.
func details(e *usererror.Error) (list []*anypb.Any) {
	add := func(m proto.Message) {
		if packed, err := anypb.New(m); err == nil { // a message of this package can always be packed
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
