package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// operations holds the long-running operations of a server that run. Those that have ended are kept in the registry, also over a
// restart. An operation that runs when the process dies is forgotten: its effects so far stay in the databases, and a client
// that asks for it is told NOT_FOUND.
type operations struct {
	ctx   context.Context // of the server
	kept  *database.Registry
	clock func() time.Time
	log   *slog.Logger
	tasks sync.WaitGroup

	mu      sync.Mutex
	running map[string]*operation // by name
	last    int64                 // of the numbers in names
}

// An operation is a long-running operation that this process runs or has run.
type operation struct {
	name    string // <resource>/operations/<id>
	started time.Time
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has ended

	mu       sync.Mutex
	metadata proto.Message
	ended    *longrunningpb.Operation // with the result; nil until it has ended
}

// operationPatience is how long a request that starts an operation waits for its end. Most operations end at once, and a reply that says so
// saves the client from polling.
const operationPatience = 2 * time.Second

// start runs work as an operation of a resource and waits up to operationPatience for its end. If id is empty the operation gets one.
// work may call update with new metadata, and must return early if its context ends.
func (os *operations) start(ctx context.Context, resource, id string, metadata proto.Message, work func(ctx context.Context, op *operation) (proto.Message, error)) (*longrunningpb.Operation, error) {
	workCtx, cancel := context.WithCancel(os.ctx)
	op := &operation{started: os.clock(), cancel: cancel, done: make(chan struct{}), metadata: metadata}
	if err := os.add(op, resource, id); err != nil {
		cancel()
		return nil, err
	}
	os.tasks.Go(func() {
		defer cancel()
		os.run(workCtx, op, work)
	})
	op.wait(ctx, operationPatience)
	return op.proto()
}

// run does the work and keeps its result. If the work panics, that is the error of this operation alone.
func (os *operations) run(ctx context.Context, op *operation, work func(context.Context, *operation) (proto.Message, error)) {
	response, err := func() (response proto.Message, err error) {
		defer rpc.Recover(&err)
		return work(ctx, op)
	}()
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		os.log.Info("operation cancelled", slog.String("operation", op.name))
	case err != nil && !status.IsForUser(err):
		os.log.LogAttrs(ctx, slog.LevelError, "internal error in operation",
			append([]slog.Attr{slog.String("operation", op.name)}, rpc.ErrorAttributes(err)...)...)
	}
	ended, err := op.result(response, err)
	if err == nil {
		err = os.keep(op, ended, os.clock())
	}
	if err != nil { // clients can still ask for it until the server ends
		os.log.Error("operation not kept", slog.String("operation", op.name), slog.Any("error", err))
	}
	op.mu.Lock()
	op.ended = ended
	op.mu.Unlock()
	close(op.done)
	if err == nil {
		os.remove(op)
	}
}

// result is the operation with its response or error, once it has ended.
func (op *operation) result(response proto.Message, failed error) (*longrunningpb.Operation, error) {
	p, err := op.proto()
	if p == nil {
		p = &longrunningpb.Operation{Name: op.name}
	}
	p.Done = true
	if failed == nil && err == nil {
		var packed *anypb.Any
		if packed, err = anypb.New(response); err == nil {
			p.Result = &longrunningpb.Operation_Response{Response: packed}
			return p, nil
		}
	}
	p.Result = &longrunningpb.Operation_Error{Error: status.Of(cmp.Or(failed, err))}
	return p, err
}

// keep stores an operation that has ended, before clients see that it has. An operation that was deleted while it ran stays deleted.
func (os *operations) keep(op *operation, ended *longrunningpb.Operation, at time.Time) error {
	os.mu.Lock()
	deleted := os.running[op.name] != op
	os.mu.Unlock()
	if deleted {
		return nil
	}
	data, err := proto.Marshal(ended)
	if err != nil {
		return err
	}
	return os.kept.PutOperation(database.Operation{Name: op.name, Ended: at, Proto: data})
}

func (os *operations) add(op *operation, resource, id string) error {
	os.mu.Lock()
	defer os.mu.Unlock()
	auto := id == ""
	for {
		if auto {
			os.last = max(os.last+1, op.started.UnixMicro())
			id = "_auto_op_" + strconv.FormatInt(os.last, 10)
		}
		op.name = resource + "/operations/" + id
		ended, err := os.kept.Operation(op.name)
		switch {
		case err != nil:
			return err
		case ended == nil && os.running[op.name] == nil:
			if os.running == nil {
				os.running = map[string]*operation{}
			}
			os.running[op.name] = op
			return nil
		case !auto:
			return usererror.OperationExists(op.name)
		}
	}
}

// find finds an operation: op if it runs, or ended if it has ended.
func (os *operations) find(name string) (op *operation, ended *longrunningpb.Operation, err error) {
	if !strings.Contains(name, "/operations/") {
		return nil, nil, usererror.InvalidResourceName("operation", name)
	}
	os.mu.Lock()
	op = os.running[name]
	os.mu.Unlock()
	if op != nil {
		return op, nil, nil
	}
	o, err := os.kept.Operation(name)
	if err != nil {
		return nil, nil, err
	}
	if o == nil {
		return nil, nil, usererror.OperationNotFound(name)
	}
	ended, err = unpack(o)
	return nil, ended, err
}

func unpack(o *database.Operation) (*longrunningpb.Operation, error) {
	p := new(longrunningpb.Operation)
	return p, proto.Unmarshal(o.Proto, p)
}

// get answers an operation as it is now.
func (os *operations) get(name string) (*longrunningpb.Operation, error) {
	op, ended, err := os.find(name)
	if op != nil {
		return op.proto()
	}
	return ended, err
}

// under lists the operations whose names begin with prefix, by name.
func (os *operations) under(prefix string) ([]*longrunningpb.Operation, error) {
	byName := map[string]*longrunningpb.Operation{}
	for _, op := range os.runningUnder(prefix) { // before the kept ones, so that an operation that ends in between is not missed
		p, err := op.proto()
		if err != nil {
			return nil, err
		}
		byName[op.name] = p
	}
	kept, err := os.kept.Operations(prefix)
	if err != nil {
		return nil, err
	}
	for _, o := range kept {
		if byName[o.Name], err = unpack(o); err != nil {
			return nil, err
		}
	}
	var list []*longrunningpb.Operation
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list, nil
}

func (os *operations) runningUnder(prefix string) []*operation {
	os.mu.Lock()
	defer os.mu.Unlock()
	var list []*operation
	for name, op := range os.running {
		if strings.HasPrefix(name, prefix) {
			list = append(list, op)
		}
	}
	return list
}

// remove removes an operation from those that run.
func (os *operations) remove(op *operation) {
	os.mu.Lock()
	defer os.mu.Unlock()
	if os.running[op.name] == op {
		delete(os.running, op.name)
	}
}

// forget removes the running operations of a resource that was dropped. The registry has removed those that had ended.
func (os *operations) forget(resource string) {
	for _, op := range os.runningUnder(resource + "/") {
		os.remove(op)
	}
}

// wait waits until the operation has ended, ctx has, or limit has passed.
func (op *operation) wait(ctx context.Context, limit time.Duration) {
	defer cpu.Waiting(ctx)()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-op.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// update replaces the metadata by a copy that change has altered.
func (op *operation) update(change func(metadata proto.Message)) {
	op.mu.Lock()
	defer op.mu.Unlock()
	next := proto.Clone(op.metadata)
	change(next)
	op.metadata = next
}

func (op *operation) proto() (*longrunningpb.Operation, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.ended != nil {
		return op.ended, nil
	}
	metadata, err := anypb.New(op.metadata)
	if err != nil {
		return nil, err
	}
	return &longrunningpb.Operation{Name: op.name, Metadata: metadata}, nil
}
