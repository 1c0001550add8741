package server

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/fault"
)

// operations holds the long-running operations of a server. They are forgotten
// when it ends: what they did is in the databases, and a client that asks again is told NOT_FOUND.
type operations struct {
	ctx   context.Context // of the server
	tasks sync.WaitGroup

	mu     sync.Mutex
	byName map[string]*operation
	last   int64 // of the numbers in names
}

// An operation is one of them.
type operation struct {
	name    string // <resource>/operations/<id>
	started time.Time
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has ended

	mu       sync.Mutex
	metadata proto.Message
	ended    time.Time
	response proto.Message
	err      error
}

const (
	// operationLife is how long a finished operation can be asked for, as on the service.
	operationLife = 7 * 24 * time.Hour
	// operationPatience is how long a request that starts an operation waits for its end, since most take no
	// time at all and clients would poll. The reply then says that it is done.
	operationPatience = 2 * time.Second
)

// startOperation runs work as an operation of a resource and waits for a moment for its end. id may be empty.
// work may call update with new metadata; it ends early if its context does.
func (s *Server) startOperation(ctx context.Context, resource, id string, metadata proto.Message, work func(ctx context.Context, op *operation) (proto.Message, error)) (*longrunningpb.Operation, error) {
	workCtx, cancel := context.WithCancel(s.operations.ctx)
	op := &operation{started: s.cfg.Clock(), cancel: cancel, done: make(chan struct{}), metadata: metadata}
	if err := s.operations.add(op, resource, id); err != nil {
		cancel()
		return nil, err
	}
	s.operations.tasks.Go(func() {
		defer cancel()
		s.runOperation(workCtx, op, work)
	})
	op.wait(ctx, operationPatience)
	return op.proto()
}

// runOperation does the work and keeps its result. A panic is the operation's error alone.
func (s *Server) runOperation(ctx context.Context, op *operation, work func(context.Context, *operation) (proto.Message, error)) {
	response, err := func() (response proto.Message, err error) {
		defer recovered(&err)
		return work(ctx, op)
	}()
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		s.cfg.Log.Info("operation cancelled", slog.String("operation", op.name))
	case err != nil && !isForUser(err):
		s.cfg.Log.LogAttrs(ctx, slog.LevelError, "internal error in operation",
			append([]slog.Attr{slog.String("operation", op.name), slog.String("error", err.Error())}, stackOf(err)...)...)
	}
	op.mu.Lock()
	op.response, op.err, op.ended = response, err, s.cfg.Clock()
	op.mu.Unlock()
	close(op.done)
}

func (os *operations) add(op *operation, resource, id string) error {
	os.mu.Lock()
	defer os.mu.Unlock()
	if id == "" {
		os.last = max(os.last+1, op.started.UnixMicro())
		id = "_auto_op_" + strconv.FormatInt(os.last, 10)
	}
	op.name = resource + "/operations/" + id
	if os.byName[op.name] != nil {
		return fault.OperationExists(op.name)
	}
	if os.byName == nil {
		os.byName = map[string]*operation{}
	}
	os.byName[op.name] = op
	return nil
}

func (os *operations) get(name string) (*operation, error) {
	os.mu.Lock()
	defer os.mu.Unlock()
	if op := os.byName[name]; op != nil {
		return op, nil
	}
	if !strings.Contains(name, "/operations/") {
		return nil, fault.InvalidResourceName("operation", name)
	}
	return nil, fault.OperationNotFound(name)
}

// under lists the operations whose names begin with prefix.
func (os *operations) under(prefix string) []*operation {
	os.mu.Lock()
	defer os.mu.Unlock()
	var list []*operation
	for name, op := range os.byName {
		if strings.HasPrefix(name, prefix) {
			list = append(list, op)
		}
	}
	return list
}

func (os *operations) remove(name string) {
	os.mu.Lock()
	defer os.mu.Unlock()
	delete(os.byName, name)
}

// sweep forgets operations that ended long ago.
func (os *operations) sweep(now time.Time) {
	for _, op := range os.under("") {
		op.mu.Lock()
		old := !op.ended.IsZero() && now.Sub(op.ended) > operationLife
		op.mu.Unlock()
		if old {
			os.remove(op.name)
		}
	}
}

// wait waits until all operations have ended; their contexts have.
func (os *operations) wait() { os.tasks.Wait() }

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
	metadata, err := anypb.New(op.metadata)
	if err != nil {
		return nil, err
	}
	p := &longrunningpb.Operation{Name: op.name, Metadata: metadata, Done: !op.ended.IsZero()}
	switch {
	case !p.Done:
	case op.err != nil:
		st, _ := statusOf(op.err)
		p.Result = &longrunningpb.Operation_Error{Error: st.Proto()}
	default:
		response, err := anypb.New(op.response)
		if err != nil {
			return nil, err
		}
		p.Result = &longrunningpb.Operation_Response{Response: response}
	}
	return p, nil
}
