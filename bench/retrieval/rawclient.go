package retrieval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	gproto "google.golang.org/protobuf/proto"
)

// rawClient reads streams of PartialResultSet without the official client. It passes the bytes of each message to a
// function.
type rawClient struct {
	conn    *grpc.ClientConn
	session string
}

// dialRaw connects to a server without TLS and creates a session.
func dialRaw(ctx context.Context, address, database string) (*rawClient, error) {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	s, err := spannerpb.NewSpannerClient(conn).CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: database, Session: &spannerpb.Session{Multiplexed: true}})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &rawClient{conn, s.Name}, nil
}

func (c *rawClient) close() error {
	if c == nil {
		return nil
	}
	return c.conn.Close()
}

// rawRequest is an encoded request and its method.
type rawRequest struct {
	method  string
	message []byte
}

// sql returns the request of a query.
func (c *rawClient) sql(text string) rawRequest {
	return newRawRequest("ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: c.session, Sql: text})
}

// read returns the request of a READ of all rows.
func (c *rawClient) read(table string, columns []string) rawRequest {
	return newRawRequest("StreamingRead", &spannerpb.ReadRequest{Session: c.session, Table: table, Columns: columns, KeySet: &spannerpb.KeySet{All: true}})
}

func newRawRequest(method string, m gproto.Message) rawRequest {
	b, err := gproto.Marshal(m)
	if err != nil {
		panic(err) // this program has made the message, so it can be encoded
	}
	return rawRequest{"/google.spanner.v1.Spanner/" + method, b}
}

// frames sends a request and calls f with each message of the reply. The message is valid until f returns.
func (c *rawClient) frames(ctx context.Context, r rawRequest, f func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, r.method, grpc.ForceCodecV2(bytesCodec{}), grpc.MaxCallRecvMsgSize(1<<30))
	if err != nil {
		return err
	}
	if err := errors.Join(s.SendMsg(r.message), s.CloseSend()); err != nil {
		return err
	}
	for {
		var frame mem.Buffer
		if err := s.RecvMsg(&frame); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		err := f(frame.ReadOnlyData())
		frame.Free()
		if err != nil {
			return err
		}
	}
}

// count sends a request, and decodes and counts the rows of the reply.
func (c *rawClient) count(ctx context.Context, r rawRequest) (int64, error) {
	d := new(rowDecoder)
	if err := c.frames(ctx, r, d.decode); err != nil {
		return 0, err
	}
	return d.rows, d.end()
}

// record runs a query and writes the messages of the reply to w, each preceded by its length (uvarint).
func (c *rawClient) record(ctx context.Context, query string, w io.Writer) error {
	out := bufio.NewWriter(w)
	err := c.frames(ctx, c.sql(query), func(frame []byte) error {
		_, err := out.Write(withLength(frame))
		return err
	})
	return errors.Join(err, out.Flush())
}

// bytesCodec is a gRPC codec that sends encoded messages unchanged and returns received messages as bytes.
type bytesCodec struct{}

func (bytesCodec) Name() string { return proto.Name }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	to, ok := v.(*mem.Buffer)
	if !ok {
		return fmt.Errorf("receive into %T", v)
	}
	*to = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}
