package server

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/admin"
	"github.com/crowfoot-db/crowfoot/server/flight"
	"github.com/crowfoot-db/crowfoot/server/grpc"
	"github.com/crowfoot-db/crowfoot/server/listener"
	"github.com/crowfoot-db/crowfoot/server/rest"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
)

// Config configures a Server.
type Config struct {
	Clock func() time.Time
	Log   *slog.Logger
	// Random is the source of the random names of sessions; nil means the system's random numbers.
	Random io.Reader
	// NoStatistics turns off the measuring of CPU time, and all metrics except those of Go and of the process. The
	// registry has a setting of its own for the statistics in SPANNER_SYS.
	NoStatistics bool
	// Memory is the budget for the memory of requests; nil means that there is no limit.
	Memory *memory.Budget
	// Descriptors is the number of files that the process may open for connections; 0 means as many as the listeners
	// can use.
	Descriptors int
	// Origins lists the origins of web pages that may send requests, such as https://app.example:8443. Requests from
	// other origins are refused.
	Origins []string
	// Hosts lists names of the machine, besides localhost, that clients may use for an HTTP listener on the loopback
	// interface.
	Hosts []string
	// Checkpoint copies the data directory to a new directory with the path to. It is nil if there is no data
	// directory.
	Checkpoint func(ctx context.Context, to string) error
	// Collectors are further metrics that /metrics serves, such as those of the storage engine.
	Collectors []prometheus.Collector
}

// Server serves the API for the databases of a registry, on two listeners.
type Server struct {
	registry *database.Registry
	cfg      Config

	data       *service
	admin      *admin.Admin
	dispatcher *rpc.Dispatcher
	account    *cpu.Account
	gatherer   prometheus.Gatherer

	grpc    *grpc.Server
	http    *rest.Server
	counts  map[string]*listener.Connections // by name of the listener: grpc, http
	closing context.CancelFunc
	// stopping is closed when the server begins to stop.
	stopping <-chan struct{}
	tasks    sync.WaitGroup
}

const (
	// sweepInterval is how often the server looks for abandoned sessions and transactions.
	sweepInterval = time.Minute
)

// Serve starts the server and returns at once. It fails if it cannot read the sessions or the unfinished operations of
// an earlier process.
func Serve(registry *database.Registry, grpcListener, httpListener net.Listener, cfg Config) (*Server, error) {
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Memory == nil {
		cfg.Memory = memory.NewBudget(memory.NoLimit)
	}
	data, err := newService(registry, cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{registry: registry, cfg: cfg, data: data, closing: cancel, account: newAccount(registry, cfg)}
	if s.admin, err = admin.New(ctx, registry, cfg.Clock, cfg.Log); err != nil {
		cancel()
		s.admin.Wait()
		return nil, err
	}

	registered := prometheus.NewRegistry()
	registered.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if !cfg.NoStatistics {
		registered.MustRegister(append(cfg.Collectors, metrics.Samples(s.samples))...)
	}
	s.gatherer = registered
	sql := flight.New(newFlightAPI(s.data), s.data.tokens, cpu.Processors())
	services := append([]rpc.Service{s.data.table(), sql.Table()}, s.admin.Services()...)
	s.dispatcher = rpc.NewDispatcher(services, cfg.Clock, cfg.Log, s.account, cfg.Memory, newMetrics(registered, cfg))

	s.counts = connectionCounts(cfg)
	origins := func(l net.Listener) *listener.Origins { return listener.NewOrigins(l.Addr(), cfg.Origins, cfg.Hosts) }
	s.grpc = grpc.NewServer(s.dispatcher, s.counts["grpc"], origins(grpcListener), cfg.Log)
	s.http = rest.NewServer(rest.NewGateway(s.dispatcher, s.observing(), cfg.Log), s.probes(), s.counts["http"], origins(httpListener), cfg.Log)
	s.stopping = ctx.Done()
	s.grpc.RegisterHealth(func() bool { return registry.Health().Reads == nil }, s.stopping)
	s.tasks.Go(func() { s.report("grpc", s.grpc.Serve(grpcListener)) })
	s.tasks.Go(func() { s.report("http", s.http.Serve(httpListener)) })
	s.tasks.Go(func() { s.sweep(ctx) })
	if !cfg.NoStatistics {
		s.tasks.Go(func() { s.keepAccount(ctx) })
	}
	return s, nil
}

// connectionCounts divides the file descriptors among the listeners.
func connectionCounts(cfg Config) map[string]*listener.Connections {
	grpc, http := listener.MaxGRPC, listener.MaxHTTP
	if cfg.Descriptors > 0 {
		grpc, http = listener.Share(cfg.Descriptors)
	}
	return map[string]*listener.Connections{"grpc": listener.NewConnections(grpc), "http": listener.NewConnections(http)}
}

func (s *Server) report(which string, err error) {
	if err != nil {
		s.cfg.Log.Error("serving ended", slog.String("listener", which), slog.Any("error", err))
	}
}

// sweep ends abandoned sessions and transactions until ctx ends.
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := s.cfg.Clock()
			s.data.sessions.sweep(now)
			s.data.transactions.sweep(now)
		case <-ctx.Done():
			return
		}
	}
}

// newAccount returns the account that measures the CPU time of requests. It is the registry's account, which also
// measures background work.
func newAccount(registry *database.Registry, cfg Config) *cpu.Account {
	if cfg.NoStatistics {
		return cpu.NoAccount()
	}
	return registry.CPU()
}

// keepAccount calls the account's method Tick regularly until ctx ends. Some CPU time belongs to no single request;
// Tick divides it among the requests.
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
