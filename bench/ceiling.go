package bench

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	gproto "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Ceiling serves until the context ends. It answers every StreamingRead and ExecuteStreamingSql with the same ready
// bytes, one row of the points table. Its cost is that of gRPC alone, which no database server can go below.
func Ceiling(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	frame, err := cannedRow()
	if err != nil {
		return err
	}
	s := grpc.NewServer(append(serverOptions(), grpc.ForceServerCodecV2(cannedCodec{encoding.GetCodecV2(proto.Name), frame}))...)
	spannerpb.RegisterSpannerServer(s, &ceiling{})
	fmt.Printf("crowfoot: ready grpc=%s http=\n", l.Addr())
	go func() {
		<-ctx.Done()
		s.Stop()
	}()
	return s.Serve(l)
}

// serverOptions repeats those of the function of this name in server/grpc, without the codec: the ceiling is the same gRPC
// server without a database. This package must not import the server, so a change there has to be made here too.
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

// cannedRow encodes the reply that the ceiling gives to every request.
func cannedRow() ([]byte, error) {
	answer := &spannerpb.PartialResultSet{
		Metadata:    &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{}},
		ResumeToken: make([]byte, 24),
		Last:        true,
	}
	for _, c := range pointsColumns {
		t := spannerpb.TypeCode_STRING
		v := structpb.NewStringValue(letters(1, c, fieldLength))
		if c == "Id" {
			t, v = spannerpb.TypeCode_INT64, structpb.NewStringValue("500000")
		}
		answer.Metadata.RowType.Fields = append(answer.Metadata.RowType.Fields, &spannerpb.StructType_Field{Name: c, Type: &spannerpb.Type{Code: t}})
		answer.Values = append(answer.Values, v)
	}
	return gproto.Marshal(answer)
}

type ceiling struct {
	spannerpb.UnimplementedSpannerServer
}

func (*ceiling) CreateSession(_ context.Context, r *spannerpb.CreateSessionRequest) (*spannerpb.Session, error) {
	now := timestamppb.Now()
	return &spannerpb.Session{Name: r.Database + "/sessions/ceiling", Multiplexed: true, CreateTime: now, ApproximateLastUseTime: now}, nil
}

// canned marks the reply for which cannedCodec sends the ready bytes.
var canned = new(spannerpb.PartialResultSet)

func (*ceiling) StreamingRead(_ *spannerpb.ReadRequest, s spannerpb.Spanner_StreamingReadServer) error {
	return s.Send(canned)
}

func (*ceiling) ExecuteStreamingSql(_ *spannerpb.ExecuteSqlRequest, s spannerpb.Spanner_ExecuteStreamingSqlServer) error {
	return s.Send(canned)
}

// cannedCodec sends the ready bytes for canned, and encodes all other messages as protos.
type cannedCodec struct {
	encoding.CodecV2
	frame []byte
}

func (c cannedCodec) Marshal(v any) (mem.BufferSlice, error) {
	if v == any(canned) {
		return mem.BufferSlice{mem.SliceBuffer(c.frame)}, nil
	}
	return c.CodecV2.Marshal(v)
}
