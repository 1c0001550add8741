package grpc

import (
	"errors"
	"net"
	"runtime"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // requests may come compressed
	"google.golang.org/grpc/keepalive"

	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// A Server serves the services of a dispatcher.
type Server struct{ server *grpc.Server }

// NewServer makes a server that Serve starts.
func NewServer(d *rpc.Dispatcher) *Server {
	s := &Server{grpc.NewServer(serverOptions()...)}
	for i := range d.Services {
		s.server.RegisterService(describe(d, &d.Services[i]), nil)
	}
	return s
}

const (
	// maxMessage is gRPC's own limit. What is longer gRPC refuses with RESOURCE_EXHAUSTED before the server sees any of
	// it, and clients then send it again for ever. So it is far above the limits of the methods, which the codec checks before it
	// decodes; and not higher still, since gRPC has all of a message in memory first.
	maxMessage = 512 << 20
	// window is what may be on the way to a client that does not read; fixed, it needs no probing.
	window = 1 << 20
	// clientGone is how long a connection may be silent, with requests on it, before it is asked whether it is alive, and how
	// long it has to answer: what a client that vanished has locked is free within ten seconds of that.
	clientGone = 10 * time.Second
)

// serverOptions are gRPC's, chosen for the least work per small request: workers keep their
// stacks, buffers are shared, and windows are fixed.
func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.NumStreamWorkers(uint32(4 * runtime.GOMAXPROCS(0))),
		grpc.ReadBufferSize(64 << 10),
		grpc.WriteBufferSize(64 << 10),
		grpc.SharedWriteBuffer(true),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(16 * window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: clientGone, Timeout: clientGone}),
	}
}

// Serve serves connections until Close. Its error is why it ended before.
func (s *Server) Serve(l net.Listener) error {
	if err := s.server.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Close ends serving: requests may finish within the grace time, then they are cut off.
func (s *Server) Close(grace time.Duration) {
	stop := time.AfterFunc(grace, s.server.Stop)
	s.server.GracefulStop()
	stop.Stop()
}
