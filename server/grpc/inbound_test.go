package grpc

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/listener"
	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// TestStreamsAreForgotten: once the client or the server has ended a stream, before or after its content came, the
// server has no state of it.
func TestStreamsAreForgotten(t *testing.T) {
	budget := memory.NewBudget(64 << 20)
	s := NewServer(rpc.NewDispatcher(nil, time.Now, slog.New(slog.DiscardHandler), nil, budget, nil), listener.NewConnections(10), new(listener.Origins), slog.New(slog.DiscardHandler))
	s.RegisterHealth(func() bool { return true }, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	var fields bytes.Buffer
	coder := hpack.NewEncoder(&fields)
	headers := func(stream uint32, path string, more ...string) {
		fields.Reset()
		list := append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type", "application/grpc"}, more...)
		for i := 0; i < len(list); i += 2 {
			_ = coder.WriteField(hpack.HeaderField{Name: list[i], Value: list[i+1]})
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields.Bytes(), EndHeaders: true})
	}
	const rounds = 10
	const unknown, watch = "/no.Service/Method", "/grpc.health.v1.Health/Watch"
	part := append(binary.BigEndian.AppendUint32([]byte{0}, 8<<20), "beginning"...)
	ends := []func(stream uint32){
		func(s uint32) { headers(s, unknown) }, // the server answers with an error, because the method does not exist
		func(s uint32) { headers(s, unknown); _ = framer.WriteData(s, false, part) },
		func(s uint32) { headers(s, watch); _ = framer.WriteRSTStream(s, http2.ErrCodeCancel) },
		func(s uint32) {
			headers(s, watch)
			_ = framer.WriteData(s, false, []byte{0, 0})
			_ = framer.WriteRSTStream(s, http2.ErrCodeCancel)
		},
		func(s uint32) { headers(s, watch, "grpc-timeout", "1m") }, // the timeout of 1 ms ends the stream
		func(s uint32) { headers(s, watch, "grpc-timeout", "1m"); _ = framer.WriteData(s, false, []byte{0, 0}) },
		func(s uint32) { headers(s, watch); _ = framer.WriteData(s, true, part) }, // the client cuts off the message
		func(s uint32) { // the message is longer than any request of gRPC's own services
			headers(s, watch)
			_ = framer.WriteData(s, false, binary.BigEndian.AppendUint32([]byte{0}, 2<<20))
			for range longMessage / (16 << 10) {
				_ = framer.WriteData(s, false, make([]byte, 16<<10))
			}
		},
		func(s uint32) { headers(s, watch, "connection", "close") }, // HTTP/2 forbids this header
	}
	go func() {
		_ = framer.WriteSettings()
		for i := range uint32(rounds * len(ends)) {
			ends[i%uint32(len(ends))](2*i + 1)
		}
	}()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	forgotten := func() bool {
		all := s.connections.which(func(*connection) bool { return true })
		if len(all) == 0 {
			return false
		}
		c := all[0]
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.last == uint32(2*rounds*len(ends)-1) && len(c.open) == 0 && c.begun.stream == 0 && budget.Usage().Reserved == 0
	}
	for !forgotten() {
		time.Sleep(time.Millisecond)
	}
	conn.Close()
	s.Close(0)
	if err := <-served; err != nil {
		t.Error(err)
	}
}
