package grpc

import (
	"errors"
	"net"
	"runtime"
	"time"

	"google.golang.org/grpc"
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
	// maxMessage is the size up to which gRPC's library takes messages. It refuses longer ones with RESOURCE_EXHAUSTED, and clients
	// then send them again for ever. So the limit is far above those of the methods, which the codec checks before it decodes and
	// refuses with INVALID_ARGUMENT. It is not higher still because the library reads a message into memory before the codec sees it.
	maxMessage = 512 << 20
	// window is how many bytes may be on the way to a client that does not read. It is fixed, so that gRPC does not probe for one.
	window = 1 << 20
	// clientGone is how long a connection with requests may be silent before the server pings it, and how long the client has to
	// answer. If it does not, its requests end, and ten seconds later other transactions can take its locks.
	clientGone = 10 * time.Second
)

// serverOptions are chosen for the least work per small request: worker goroutines keep their
// stacks, write buffers are shared, and flow-control windows are fixed.
func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		//lint:ignore SA1019 what replaces it is for the whole process, and does not know the method
		grpc.RPCDecompressor(handOver{}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.NumStreamWorkers(uint32(4 * runtime.GOMAXPROCS(0))),
		grpc.ReadBufferSize(64 << 10),
		grpc.WriteBufferSize(64 << 10),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(16 * window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: clientGone, Timeout: clientGone}),
	}
}

// Serve serves connections until Close. Its error says why it ended earlier.
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
