package admin

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// operations holds the long-running operations of a server. The registry stores each operation when it begins and when
// it ends, so operations outlive the process: clients can still get the result of a finished one, and the next process
// resumes an unfinished one (resume.go).
type operations struct {
	ctx   context.Context // ends when the server stops
	kept  *database.Registry
	clock func() time.Time
	log   *slog.Logger
	tasks sync.WaitGroup

	records sync.Mutex // held while records of operations are written or deleted; locked before mu
	latest  time.Time  // start time of the newest operation; guarded by the mutex records

	mu      sync.Mutex
	running map[string]*operation // by name
	newest  map[string]*operation // the newest running operation of each resource
	last    int64                 // highest number in a generated id: see the method name
}

// An operation is a long-running operation that this process runs, or has run.
type operation struct {
	name    string // <resource>/operations/<id>
	started time.Time
	ctx     context.Context // context of the operation's work
	server  context.Context // when this context ends, the operation is left to the next process
	cancel  context.CancelFunc
	done    chan struct{} // closed when the operation has ended
	before  *operation    // the previous operation of the same resource; nil if it had ended when this one began
	passed  chan struct{} // closed when this operation and all earlier ones of the same resource have ended

	mu       sync.Mutex
	metadata proto.Message
	packed   *anypb.Any               // encoded metadata, cached for clients that poll; nil if metadata has changed
	ended    *longrunningpb.Operation // the finished operation with its result; nil while it runs
}

// A task is the work of an operation, with the resource that it works on.
type task struct {
	resource, id string // if id is empty, an id is generated
	metadata     proto.Message
	// request is the request that the next process needs to resume the operation. It is nil if the work is brief and
	// waits for nothing. Such an operation ends before the client gets the reply, and is never resumed.
	request proto.Message
	work    work
}

// work performs an operation. It may change the metadata with operation.update. If ctx ends, it must return early.
type work func(ctx context.Context, op *operation) (response proto.Message, err error)

// operationPatience is how long a request that starts an operation waits for the operation to end before it replies.
// Most operations end in that time, so their clients need not poll.
const operationPatience = 2 * time.Second

// start runs a task as an operation. It returns when the operation has ended, or after operationPatience. If t.request
// is nil, it waits for the end however long that takes.
func (os *operations) start(ctx context.Context, t task) (*longrunningpb.Operation, error) {
	op := &operation{metadata: t.metadata}
	if err := os.add(op, t); err != nil {
		return nil, err
	}
	os.launch(op, t)
	limit := operationPatience
	if t.request == nil {
		limit = math.MaxInt64
	}
	op.wait(ctx, limit)
	return op.proto()
}

// enlist adds op, which already has its name, to the running operations. The caller holds mu.
func (os *operations) enlist(op *operation, resource string) {
	op.server = os.ctx
	op.ctx, op.cancel = context.WithCancel(os.ctx)
	op.done, op.passed, op.before = make(chan struct{}), make(chan struct{}), os.newest[resource]
	os.running[op.name], os.newest[resource] = op, op
}

// launch starts the task of an operation that enlist has added.
func (os *operations) launch(op *operation, t task) {
	os.tasks.Go(func() {
		defer op.cancel()
		os.run(op.ctx, op, t)
		if op.before != nil {
			<-op.before.passed
			op.before = nil
		}
		close(op.passed)
		os.mu.Lock()
		defer os.mu.Unlock()
		if os.newest[t.resource] == op {
			delete(os.newest, t.resource)
		}
	})
}

// awaitEarlier waits until all earlier operations of the same resource have ended.
func (op *operation) awaitEarlier(ctx context.Context) error {
	if op.before == nil {
		return nil
	}
	select {
	case <-op.before.passed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keepAgain is the pause between attempts to store a finished operation while the store refuses writes. Until the
// result is stored, clients see the operation as running: if the process ends before that, the next process runs the
// operation again, and may get another result.
const keepAgain = 100 * time.Millisecond

// run does the work of the operation and stores its result. If the work panics, only this operation fails. If the work
// stops because the server stops, run stores nothing, so that the next process resumes the operation.
func (os *operations) run(ctx context.Context, op *operation, t task) {
	defer close(op.done)
	response, err := func() (response proto.Message, err error) {
		defer rpc.Recover(&err)
		return t.work(ctx, op)
	}()
	switch {
	case err == nil:
	case os.ctx.Err() != nil && t.request != nil:
		os.log.Info("operation interrupted; it is resumed after a start", slog.String("operation", op.name))
		return
	case errors.Is(ctx.Err(), context.Canceled):
		os.log.Info("operation cancelled", slog.String("operation", op.name))
	case !status.IsForUser(err):
		os.log.LogAttrs(ctx, slog.LevelError, "internal error in operation",
			append([]slog.Attr{slog.String("operation", op.name)}, rpc.ErrorAttributes(err)...)...)
	}
	ended, err := op.result(response, err)
	if err == nil {
		err = os.keep(op, ended)
		for errors.Is(err, kv.ErrRefused) && t.request != nil {
			select {
			case <-time.After(keepAgain):
			case <-os.ctx.Done():
				return // the next process resumes the operation
			}
			err = os.keep(op, ended)
		}
	}
	op.mu.Lock()
	op.ended = ended
	op.mu.Unlock()
	if err != nil { // the result could not be stored; clients can still get it until the server stops
		os.log.Error("operation not kept", slog.String("operation", op.name), slog.Any("error", err))
		return
	}
	os.remove(op)
}

// result returns the finished operation with its response or error.
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

// keep stores a finished operation; clients see its end only after that. An operation that was deleted while it ran is
// not stored.
func (os *operations) keep(op *operation, ended *longrunningpb.Operation) error {
	data, err := proto.Marshal(ended)
	if err != nil {
		return err
	}
	os.records.Lock()
	defer os.records.Unlock()
	if !os.runs(op) {
		return os.forgetApplied(op)
	}
	return os.kept.PutOperation(database.Operation{Name: op.name, Started: op.started, Ended: os.clock(), Proto: data})
}

// forgetApplied deletes the stored statement progress of an operation that was deleted while it ran. If a new operation
// has the same name, forgetApplied does nothing, because the end of the new operation deletes the progress. The caller
// holds the mutex records.
func (os *operations) forgetApplied(op *operation) error {
	if _, _, err := os.find(op.name); usererror.CodeOf(err) == codes.NotFound {
		return os.kept.ForgetOperations(op.name)
	}
	return nil
}

// runs reports whether an operation is running and was not deleted.
func (os *operations) runs(op *operation) bool {
	os.mu.Lock()
	defer os.mu.Unlock()
	return os.running[op.name] == op
}

// add gives an operation its name, stores the operation if it can be resumed, and adds it to the running operations.
func (os *operations) add(op *operation, t task) error {
	os.records.Lock()
	defer os.records.Unlock()
	op.started = os.begins()
	if err := os.name(op, t.resource, t.id); err != nil {
		return err
	}
	if t.request != nil {
		record, err := op.record(t.request)
		if err != nil {
			return err
		}
		if err := os.kept.PutOperation(record); err != nil {
			return err
		}
	}
	os.mu.Lock()
	defer os.mu.Unlock()
	os.enlist(op, t.resource)
	return nil
}

// begins returns the start time for a new operation. The time is later than that of the previous operation even if the
// clock was set back, because the next process resumes operations in the order of their start times. The caller holds
// the mutex records.
func (os *operations) begins() time.Time {
	now := os.clock().Round(0) // Round removes the monotonic clock, which is not stored
	if !now.After(os.latest) {
		now = os.latest.Add(time.Nanosecond)
	}
	os.latest = now
	return now
}

// name gives op a unique name: with the given id, or a generated one if id is empty.
func (os *operations) name(op *operation, resource, id string) error {
	auto := id == ""
	for {
		if auto {
			os.last = max(os.last+1, op.started.UnixMicro())
			id = "_auto_op_" + strconv.FormatInt(os.last, 10)
		}
		op.name = resource + "/operations/" + id
		_, _, err := os.find(op.name)
		switch {
		case usererror.CodeOf(err) == codes.NotFound:
			return nil
		case err != nil:
			return err
		case !auto:
			return usererror.OperationExists(op.name)
		}
	}
}

// record returns the record to store for an operation that begins.
func (op *operation) record(request proto.Message) (r database.Operation, err error) {
	r = database.Operation{Name: op.name, Started: op.started}
	packed, err := anypb.New(request)
	if err != nil {
		return r, err
	}
	if r.Request, err = proto.Marshal(packed); err != nil {
		return r, err
	}
	begun, err := op.proto()
	if err != nil {
		return r, err
	}
	r.Proto, err = proto.Marshal(begun)
	return r, err
}

// find finds an operation by its name. If the operation is running, the first result is that operation. Otherwise the
// second result is the finished operation from the store.
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

// get returns the current state of an operation.
func (os *operations) get(name string) (*longrunningpb.Operation, error) {
	op, ended, err := os.find(name)
	if op != nil {
		return op.proto()
	}
	return ended, err
}

// under iterates over operations in the order of their names: over those whose names begin with the first argument and
// are greater than the second argument. The iteration stops after an error.
func (os *operations) under(prefix, after string) iter.Seq2[*longrunningpb.Operation, error] {
	running := os.runningUnder(prefix) // read before the store, so that an operation that ends in between is not missed
	slices.SortFunc(running, func(x, y *operation) int { return cmp.Compare(x.name, y.name) })
	running = slices.DeleteFunc(running, func(op *operation) bool { return op.name <= after })
	return func(yield func(*longrunningpb.Operation, error) bool) {
		rest := running
		for o, err := range os.kept.Operations(prefix, after) {
			if err != nil {
				yield(nil, err)
				return
			}
			for len(rest) > 0 && rest[0].name < o.Name {
				if !yield(rest[0].proto()) {
					return
				}
				rest = rest[1:]
			}
			p := func() (*longrunningpb.Operation, error) { return unpack(o) }
			if len(rest) > 0 && rest[0].name == o.Name {
				if o.Ended.IsZero() { // the record was stored when the operation began; the operation still runs
					p = rest[0].proto
				}
				rest = rest[1:]
			}
			if !yield(p()) {
				return
			}
		}
		for _, op := range rest {
			if !yield(op.proto()) {
				return
			}
		}
	}
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

// remove removes op from the running operations.
func (os *operations) remove(op *operation) {
	os.mu.Lock()
	defer os.mu.Unlock()
	if os.running[op.name] == op {
		delete(os.running, op.name)
	}
}

// dropping drops a resource with its operations, by calling drop. The registry deletes the records of finished
// operations. Running operations are cancelled and leave no record.
func (os *operations) dropping(resource string, drop func() (*database.Dropped, error)) error {
	dropped, err := os.dropRecords(resource, drop)
	if err != nil {
		return err
	}
	dropped.Erase()
	return nil
}

func (os *operations) dropRecords(resource string, drop func() (*database.Dropped, error)) (*database.Dropped, error) {
	os.records.Lock()
	defer os.records.Unlock()
	dropped, err := drop()
	if err != nil {
		return nil, err
	}
	for _, op := range os.runningUnder(resource + "/") {
		op.cancel()
		os.remove(op)
	}
	return dropped, nil
}

// wait waits until the operation ends, ctx ends, or limit has passed.
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

// update calls the function change, which may modify the metadata in place, because clients get encoded copies of them.
func (op *operation) update(change func(metadata proto.Message)) {
	op.mu.Lock()
	defer op.mu.Unlock()
	change(op.metadata)
	op.packed = nil
}

func (op *operation) proto() (*longrunningpb.Operation, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.ended != nil {
		return op.ended, nil
	}
	if op.packed == nil {
		packed, err := anypb.New(op.metadata)
		if err != nil {
			return nil, err
		}
		op.packed = packed
	}
	return &longrunningpb.Operation{Name: op.name, Metadata: op.packed}, nil
}
