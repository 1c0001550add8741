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
	"github.com/crowfoot-db/crowfoot/usererror"
)

// operations holds the long-running operations of a server. Those that have ended are in the registry, and
// outlive it. One that runs when the process dies is forgotten: what it did is in the databases, and a client that asks
// again is told NOT_FOUND.
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

// An operation is one of them.
type operation struct {
	name    string // <resource>/operations/<id>
	started time.Time
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has ended

	mu       sync.Mutex
	metadata proto.Message
	ended    *longrunningpb.Operation // what is answered from its end on; nil before
}

// operationPatience is how long a request that starts an operation waits for its end, since most take no
// time at all and clients would poll. The reply then says that it is done.
const operationPatience = 2 * time.Second

// start runs work as an operation of a resource and waits for a moment for its end. id may be empty.
// work may call update with new metadata; it ends early if its context does.
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

// run does the work and keeps its result. A panic is the operation's error alone.
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
	if err != nil { // it can be asked for until the server ends
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

// result is what is answered once the operation has ended.
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

// keep makes the end of an operation durable, before anybody is told of it. One that was deleted meanwhile stays so.
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

// find finds an operation: op if it runs, else what is answered since its end.
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
	for _, op := range os.runningUnder(prefix) { // first: what ends meanwhile is found below
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

// remove takes an operation out of those that run.
func (os *operations) remove(op *operation) {
	os.mu.Lock()
	defer os.mu.Unlock()
	if os.running[op.name] == op {
		delete(os.running, op.name)
	}
}

// forget forgets the operations of a resource that is dropped. The registry has forgotten those that have ended.
func (os *operations) forget(resource string) {
	for _, op := range os.runningUnder(resource + "/") {
		os.remove(op)
	}
}

// wait waits for the end of the operation, at most as long as given.
func (op *operation) wait(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-op.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// update changes the metadata; change gets a copy.
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
