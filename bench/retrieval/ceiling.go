package retrieval

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	gproto "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/studies"
)

// Ceiling runs a server until the context ends. The server answers every StreamingRead and ExecuteStreamingSql with the
// same messages, which are already encoded. The parameter frames names the file with these messages, each preceded by
// its length (uvarint). If frames is "", the answer is one row of the points table. If the parameter batches names a
// file of record batches, the server answers Flight SQL, too. The server does no work except that of gRPC, so no
// database server that uses gRPC can need less CPU.
func Ceiling(ctx context.Context, frames, batches string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := new(ceiling)
	if frames != "" {
		c.frames, err = readFrames(frames)
	} else {
		c.frames, err = cannedRow()
	}
	if err != nil {
		return err
	}
	s := grpc.NewServer(append(serverOptions(), grpc.ForceServerCodecV2(cannedCodec{encoding.GetCodecV2(proto.Name)}))...)
	spannerpb.RegisterSpannerServer(s, c)
	if batches != "" {
		f, err := readFlight(batches)
		if err != nil {
			return err
		}
		flight.RegisterFlightServiceServer(s, f)
	}
	fmt.Printf("crowfoot: ready grpc=%s http=\n", l.Addr())
	go func() {
		<-ctx.Done()
		s.Stop()
	}()
	return s.Serve(l)
}

// serverOptions returns those options of package server/grpc that affect the speed of gRPC. The package has a read
// buffer of its own. This function sets gRPC's read buffer to the same size instead. So Ceiling shows how much CPU the
// same gRPC server needs without a database. The package retrieval must not import the server, so a change of the
// options in package server/grpc must be repeated here.
func serverOptions() []grpc.ServerOption {
	const window = 1 << 20
	return []grpc.ServerOption{
		grpc.NumStreamWorkers(uint32(4 * runtime.GOMAXPROCS(0))),
		grpc.ReadBufferSize(64 << 10),
		grpc.WriteBufferSize(64 << 10),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(16 * window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}),
	}
}

// cannedRow returns the encoded answer, one row of the points table, for a server without a file of messages.
func cannedRow() ([]*cannedFrame, error) {
	answer := &spannerpb.PartialResultSet{
		Metadata:    &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{}},
		ResumeToken: make([]byte, 24),
		Last:        true,
	}
	for _, c := range studies.PointsColumns {
		t := spannerpb.TypeCode_STRING
		v := structpb.NewStringValue(harness.Letters(1, c, studies.PointsFieldLength))
		if c == "Id" {
			t, v = spannerpb.TypeCode_INT64, structpb.NewStringValue("500000")
		}
		answer.Metadata.RowType.Fields = append(answer.Metadata.RowType.Fields, &spannerpb.StructType_Field{Name: c, Type: &spannerpb.Type{Code: t}})
		answer.Values = append(answer.Values, v)
	}
	b, err := gproto.Marshal(answer)
	return []*cannedFrame{{ready: b}}, err
}

// readFrames reads a file of messages, each preceded by its length (uvarint).
func readFrames(name string) (list []*cannedFrame, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, fmt.Errorf("%s is no file of frames", name)
		}
		list = append(list, &cannedFrame{ready: b[n:][:size:size]})
		b = b[uint64(n)+size:]
	}
	return list, nil
}

type ceiling struct {
	spannerpb.UnimplementedSpannerServer
	frames []*cannedFrame
}

func (*ceiling) CreateSession(_ context.Context, r *spannerpb.CreateSessionRequest) (*spannerpb.Session, error) {
	now := timestamppb.Now()
	return &spannerpb.Session{Name: r.Database + "/sessions/ceiling", Multiplexed: true, CreateTime: now, ApproximateLastUseTime: now}, nil
}

// cannedFrame is a message that is already encoded. cannedCodec sends its bytes unchanged.
type cannedFrame struct{ ready []byte }

func (c *ceiling) StreamingRead(_ *spannerpb.ReadRequest, s spannerpb.Spanner_StreamingReadServer) error {
	return c.send(s)
}

func (c *ceiling) ExecuteStreamingSql(_ *spannerpb.ExecuteSqlRequest, s spannerpb.Spanner_ExecuteStreamingSqlServer) error {
	return c.send(s)
}

func (c *ceiling) send(s grpc.ServerStream) error {
	for _, f := range c.frames {
		if err := s.SendMsg(f); err != nil {
			return err
		}
	}
	return nil
}

// cannedCodec sends the bytes of a cannedFrame unchanged, and encodes all other messages as protocol buffers.
type cannedCodec struct{ encoding.CodecV2 }

func (c cannedCodec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*cannedFrame); ok {
		return mem.BufferSlice{mem.SliceBuffer(f.ready)}, nil
	}
	return c.CodecV2.Marshal(v)
}
