package grpc

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/crowfoot-db/crowfoot/server/listener"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
)

// A Server serves the services of a dispatcher over gRPC.
type Server struct {
	server      *grpc.Server
	connections *connections
	closing     chan struct{}
}

// NewServer returns a server; Serve starts it. The parameter count counts and limits the server's connections. The
// parameter origins says which web pages may send requests; the server refuses requests of other web pages.
func NewServer(d *rpc.Dispatcher, count *listener.Connections, origins *listener.Origins, log *slog.Logger) *Server {
	conns := newConnections(count, d.Memory(), log)
	s := &Server{grpc.NewServer(serverOptions(conns, origins)...), conns, make(chan struct{})}
	for i := range d.Services {
		desc := describe(d, &d.Services[i])
		for _, m := range desc.Streams {
			if m.ClientStreams {
				conns.several["/"+desc.ServiceName+"/"+m.StreamName] = true
			}
		}
		s.server.RegisterService(desc, nil)
	}
	return s
}

const (
	// maxMessage is the limit of gRPC's library for messages in bytes. The library refuses longer messages with
	// RESOURCE_EXHAUSTED, and clients then resend them forever. So maxMessage is far above the limits of the methods:
	// the codec checks these, and refuses a longer message with INVALID_ARGUMENT. maxMessage is not higher still,
	// because the library reads a message into memory before the codec sees it.
	maxMessage = 512 << 20
	// window is the flow-control window: the number of bytes that can be on the way to a client that does not read. It
	// is fixed, so that gRPC does not measure the connection to choose one.
	window = 1 << 20
	// clientGone is how long a connection with requests may be silent before the server pings the client, and how long
	// the client then has to answer. If the client does not answer, its requests end, and ten seconds later other
	// transactions can take the locks of its transactions.
	clientGone = 10 * time.Second
)

// serverOptions returns the options of gRPC's server. Some save work for each small request: worker goroutines keep
// their stacks, and flow-control windows have a fixed size. The others are limits.
func serverOptions(conns *connections, origins *listener.Origins) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(conns),
		grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
			return begin(ctx, info, origins)
		}),
		grpc.MaxConcurrentStreams(listener.MaxStreams),
		grpc.MaxHeaderListSize(listener.MaxHeaderBytes),
		grpc.ConnectionTimeout(listener.HandshakeTime),
		grpc.ForceServerCodecV2(newCodec()),
		//lint:ignore SA1019 what replaces it is for the whole process, and does not know the method
		grpc.RPCDecompressor(handOver{}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.NumStreamWorkers(uint32(4 * runtime.GOMAXPROCS(0))),
		grpc.ReadBufferSize(0), // the type inbound has a buffer
		grpc.WriteBufferSize(64 << 10),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(16 * window),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: clientGone, Timeout: clientGone, MaxConnectionIdle: listener.IdleTime}),
	}
}

// begin accepts or refuses a request when its headers have come. The handler would do that too late, because the
// library reads the message of most methods before it calls the handler. Requests of the library's own services, health
// and reflection, get no receipt: they have no transport, which would mark the receipt when the request has been
// received.
func begin(ctx context.Context, info *tap.Info, origins *listener.Origins) (context.Context, error) {
	if err := checkOrigin(origins, info); err != nil {
		return ctx, err
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ctx, nil
	}
	from, ok := p.Addr.(address)
	switch {
	case !ok:
		return ctx, nil
	case strings.HasPrefix(info.FullMethodName, "/grpc."):
		return ctx, refused(from.conn.ask())
	}
	r, err := from.conn.begin(ctx, from.conn.all.several[info.FullMethodName])
	if err != nil {
		return ctx, refused(err)
	}
	return r, nil
}

// refused returns gRPC's status of an error, or nil if err is nil.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return grpcstatus.FromProto(status.Of(err)).Err()
}

// ask registers a request for one of gRPC's own services. It fails if there is no memory for the request.
func (c *connection) ask() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used, c.begun.small = true, true
	return c.hold()
}

// checkOrigin refuses requests from web pages of other origins. It does not compare the host with the list of allowed
// hosts, because browsers send no gRPC requests and clients use any name for the server.
func checkOrigin(origins *listener.Origins, info *tap.Info) error {
	origin, site := info.Header["origin"], info.Header["sec-fetch-site"]
	if len(origin) == 0 && len(site) == 0 {
		return nil
	}
	return refused(origins.CheckPage(first(info.Header[":authority"]), first(origin), first(site)))
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// Serve serves connections until Close is called. It returns an error if it ends for another reason.
func (s *Server) Serve(l net.Listener) error {
	go s.connections.watch(s.closing)
	if err := s.server.Serve(accepting{l, s.connections.count}); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Close stops the server. Requests that have not ended when the grace time has passed are cut off.
func (s *Server) Close(grace time.Duration) {
	close(s.closing)
	// Close the connections without any request. Otherwise gRPC's library would wait for their handshakes.
	s.connections.close(func(c *connection) bool { return !c.asked() })
	stop := time.AfterFunc(grace, func() {
		s.connections.close(func(*connection) bool { return true })
		s.server.Stop()
	})
	s.server.GracefulStop()
	stop.Stop()
}
