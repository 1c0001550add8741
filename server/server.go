package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // requests may come compressed
	"google.golang.org/grpc/keepalive"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// Config is what a Server needs from outside.
type Config struct {
	Clock func() time.Time
	Log   *slog.Logger
	// Random is where the names of sessions and operations come from; nil is the system's.
	Random io.Reader
	// NoStatistics is to measure and count nothing; the registry has a setting of its own.
	NoStatistics bool
}

// Server serves the API of a registry's databases on two listeners.
type Server struct {
	registry *database.Registry
	cfg      Config

	sessions     sessions
	transactions transactions
	operations   operations
	tokens       tokenKey
	serving      []service
	account      *cpu.Account
	gatherer     prometheus.Gatherer

	grpc    *grpc.Server
	http    *http.Server
	closing context.CancelFunc
	tasks   sync.WaitGroup
}

// Serve begins to serve and returns at once.
func Serve(registry *database.Registry, grpcListener, httpListener net.Listener, cfg Config) *Server {
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	s := &Server{registry: registry, cfg: cfg, tokens: newTokenKey(), account: newAccount(cfg)}
	s.transactions.clock = cfg.Clock
	s.transactions.last.Store(uint64(cfg.Clock().UnixMicro()))
	ctx, cancel := context.WithCancel(context.Background())
	s.closing = cancel
	s.operations.ctx, s.operations.kept = ctx, registry

	s.serving = s.services()
	s.observe(s.serving)
	s.grpc = grpc.NewServer(serverOptions()...)
	for _, sv := range s.serving {
		s.grpc.RegisterService(s.describe(sv), s)
	}
	s.http = &http.Server{Handler: newGateway(s, s.serving), ReadHeaderTimeout: readHeaderTimeout}
	s.tasks.Go(func() { s.report("grpc", s.grpc.Serve(grpcListener)) })
	s.tasks.Go(func() { s.report("http", s.http.Serve(httpListener)) })
	s.tasks.Go(func() { s.sweep(ctx) })
	if !cfg.NoStatistics {
		s.tasks.Go(func() { s.keepAccount(ctx) })
	}
	return s
}

const (
	// readHeaderTimeout keeps connections that send nothing from piling up.
	readHeaderTimeout = 30 * time.Second
	// sweepInterval is how often sessions and transactions are looked through for abandoned ones.
	sweepInterval = time.Minute
	// maxMessage is gRPC's own limit. What is longer gRPC refuses with RESOURCE_EXHAUSTED before anything of the server hears of it,
	// and clients then send it again for ever. So it is far above the limits of the methods, which codec checks before it
	// decodes; and not higher still, since gRPC has all of a message in memory first.
	maxMessage = 512 << 20
	// closeGrace is how long requests may go on once the server is told to stop.
	closeGrace = 2 * time.Second
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

// services are all services with their methods.
func (s *Server) services() []service {
	list := []service{
		{name: "google.spanner.v1.Spanner", methods: append(s.sessionMethods(), s.dataMethods()...)},
		{name: "google.spanner.admin.instance.v1.InstanceAdmin", methods: s.instanceMethods()},
		{name: "google.spanner.admin.database.v1.DatabaseAdmin", methods: s.databaseMethods()},
		{name: "google.longrunning.Operations", methods: s.operationMethods()},
	}
	for i := range list {
		list[i] = list[i].complete()
	}
	return list
}

// dataMethods are the RPCs that read and write rows.
func (s *Server) dataMethods() []method {
	return []method{
		varied(executed("ExecuteSql", s.executeSQL)),
		varied(streaming("ExecuteStreamingSql", s.executeStreamingSQL)),
		measured(executed("ExecuteBatchDml", s.executeBatchDML)),
		varied(executed("Read", s.read)),
		varied(streaming("StreamingRead", s.streamingRead)),
		executed("BeginTransaction", s.begin),
		executed("Commit", s.commit),
		unary("Rollback", s.rollback),
		unary("PartitionQuery", s.partitionQuery),
		unary("PartitionRead", s.partitionRead),
		streaming("BatchWrite", s.batchWrite),
	}
}

func (s *Server) report(which string, err error) {
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) && !errors.Is(err, http.ErrServerClosed) {
		s.cfg.Log.Error("serving ended", slog.String("listener", which), slog.Any("error", err))
	}
}

// sweep gives up what clients left behind.
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := s.cfg.Clock()
			s.sweepSessions(now)
			s.transactions.sweep(now)
		case <-ctx.Done():
			return
		}
	}
}

func newAccount(cfg Config) *cpu.Account {
	if cfg.NoStatistics {
		return cpu.NoAccount()
	}
	return cpu.NewAccount()
}

// keepAccount has the account learn what messages cost.
func (s *Server) keepAccount(ctx context.Context) {
	tick := time.NewTicker(cpu.TickEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.account.Tick()
		case <-ctx.Done():
			return
		}
	}
}

// Close stops serving: requests may finish for a moment, then they are cut off.
func (s *Server) Close() error {
	s.closing()
	graceful := time.AfterFunc(closeGrace, s.grpc.Stop)
	s.grpc.GracefulStop()
	graceful.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.operations.wait()
	s.tasks.Wait()
	return err
}
