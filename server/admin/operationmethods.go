package admin

import (
	"context"
	"strings"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/crowfoot-db/crowfoot/server/listing"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// methods returns the RPCs about operations.
func (os *operations) methods() []rpc.Method {
	return []rpc.Method{
		rpc.Unary("ListOperations", os.listOperations),
		rpc.Unary("GetOperation", os.getOperation),
		rpc.Unary("DeleteOperation", os.deleteOperation),
		rpc.Unary("CancelOperation", os.cancelOperation),
		rpc.Unary("WaitOperation", os.waitOperation),
	}
}

func (os *operations) getOperation(_ context.Context, req *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	return os.get(req.Name)
}

func (os *operations) cancelOperation(_ context.Context, req *longrunningpb.CancelOperationRequest) (*emptypb.Empty, error) {
	op, _, err := os.find(req.Name)
	if err != nil {
		return nil, err
	}
	if op != nil {
		op.cancel()
		err = os.keepCancelled(req.Name)
	}
	return &emptypb.Empty{}, err
}

// keepCancelled stores that an operation was cancelled. If this process ends before the operation does, the next
// process then does not continue the operation.
func (os *operations) keepCancelled(name string) error {
	os.records.Lock()
	defer os.records.Unlock()
	o, err := os.kept.Operation(name)
	if o == nil || err != nil || !o.Ended.IsZero() || o.Cancelled {
		return err
	}
	o.Cancelled = true
	return os.kept.PutOperation(*o)
}

func (os *operations) deleteOperation(_ context.Context, req *longrunningpb.DeleteOperationRequest) (*emptypb.Empty, error) {
	os.records.Lock()
	defer os.records.Unlock()
	op, _, err := os.find(req.Name)
	if err != nil {
		return nil, err
	}
	if op != nil {
		os.remove(op)
	}
	return &emptypb.Empty{}, os.kept.ForgetOperations(req.Name)
}

// maxOperationWait is the longest time that WaitOperation waits.
const maxOperationWait = time.Hour

func (os *operations) waitOperation(ctx context.Context, req *longrunningpb.WaitOperationRequest) (*longrunningpb.Operation, error) {
	op, ended, err := os.find(req.Name)
	if op == nil {
		return ended, err
	}
	limit := maxOperationWait
	if req.Timeout != nil {
		limit = min(limit, req.Timeout.AsDuration())
	}
	op.wait(ctx, limit)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return op.proto()
}

// listOperations lists the operations of a resource. The request's name is RESOURCE/operations or RESOURCE.
func (os *operations) listOperations(_ context.Context, req *longrunningpb.ListOperationsRequest) (*longrunningpb.ListOperationsResponse, error) {
	prefix := strings.TrimSuffix(req.Name, "/operations") + "/operations/"
	list, next, err := os.listed(req, prefix, nil)
	if err != nil {
		return nil, err
	}
	return &longrunningpb.ListOperationsResponse{Operations: list, NextPageToken: next}, nil
}

// maxOperationsBytes is the maximum size of one page of operations in bytes. A page with a single operation may be
// larger. An operation can have 10 MiB of statements, but gRPC clients accept messages of 4 MiB by default:
// https://pkg.go.dev/google.golang.org/grpc#MaxCallRecvMsgSize.
const maxOperationsBytes = 2 << 20

// An operationsRequest asks for one page of operations.
type operationsRequest interface {
	listing.PageRequest
	GetFilter() string
}

// listed returns one page of the operations whose names begin with prefix and which match the request's filter, and the
// token of the next page. If want is not nil, only operations whose names it accepts are listed.
func (os *operations) listed(req operationsRequest, prefix string, want func(name string) bool) ([]*longrunningpb.Operation, string, error) {
	conditions, err := parseOperationFilter(req.GetFilter())
	if err != nil {
		return nil, "", err
	}
	after, size, err := listing.Bounds(req)
	if err != nil {
		return nil, "", err
	}
	var list []*longrunningpb.Operation
	bytes := 0
	for op, err := range os.under(prefix, after) {
		if err != nil {
			return nil, "", err
		}
		if want != nil && !want(op.Name) || !conditions.match(op) {
			continue
		}
		bytes += proto.Size(op)
		if len(list) == size || len(list) > 0 && bytes > maxOperationsBytes {
			return list, listing.NextPage(req, list[len(list)-1].Name), nil
		}
		list = append(list, op)
	}
	return list, "", nil
}

// An operationFilter is a filter of ListOperations: conditions on name, done, error and metadata.@type, joined by AND.
// Clients use no other part of the filter language.
type operationFilter []func(*longrunningpb.Operation) bool

func (f operationFilter) match(op *longrunningpb.Operation) bool {
	for _, ok := range f {
		if !ok(op) {
			return false
		}
	}
	return true
}

func parseOperationFilter(text string) (operationFilter, error) {
	var filter operationFilter
	for _, term := range strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(text)) {
		if strings.EqualFold(term, "AND") {
			continue
		}
		at := strings.IndexAny(term, ":=")
		if at < 0 {
			return nil, usererror.InvalidFilter(text)
		}
		condition := operationCondition(term[:at], strings.Trim(term[at+1:], `"=`))
		if condition == nil {
			return nil, usererror.InvalidFilter(text)
		}
		filter = append(filter, condition)
	}
	return filter, nil
}

func operationCondition(field, value string) func(*longrunningpb.Operation) bool {
	switch field {
	case "name":
		return func(op *longrunningpb.Operation) bool { return strings.Contains(op.Name, value) }
	case "done":
		return func(op *longrunningpb.Operation) bool { return op.Done == strings.EqualFold(value, "true") }
	case "error":
		return func(op *longrunningpb.Operation) bool {
			return op.GetError() != nil && (value == "*" || strings.Contains(op.GetError().GetMessage(), value))
		}
	case "metadata.@type":
		return func(op *longrunningpb.Operation) bool { return strings.HasSuffix(op.Metadata.GetTypeUrl(), value) }
	}
	return nil
}
