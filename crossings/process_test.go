package crossings

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server"
)

const (
	dataDir      = "data"
	databaseName = database.DefaultInstance + "/databases/crossings"
	// requestBytes is the memory budget in bytes of all requests together.
	requestBytes = 256 << 20
	// endpoint is the address that clients are given. Their dialer ignores it and connects to the only server.
	endpoint = "passthrough:///crowfoot"
)

// A process is a server with its clients. All of it runs in the test's synctest bubble: connections and the disk are
// in memory, and the clock is that of the bubble.
type process struct {
	disk      *disktest.Disk
	dir       string
	budget    *memory.Budget
	store     *pebble.Store
	registry  *database.Registry
	server    *server.Server
	db        *database.Database // nil before the database is created
	dial      []grpc.DialOption
	conn      *grpc.ClientConn
	data      spannerpb.SpannerClient
	flightSQL *flightsql.Client
	client    *spanner.Client
	sessions  map[string]string // session names by role
	log       errorLog
}

// errorLog records the errors that the server logs, to explain a failure of the test.
type errorLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *errorLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *errorLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// pipes is a listener whose connections are in memory.
type pipes struct{ *bufconn.Listener }

func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// start starts a server on the files of a directory.
func start(disk *disktest.Disk, dir string) (p *process, err error) {
	p = &process{disk: disk, dir: dir, budget: memory.NewBudget(requestBytes), sessions: map[string]string{}}
	log := slog.New(slog.NewTextHandler(&p.log, &slog.HandlerOptions{Level: slog.LevelError}))
	if p.store, err = pebble.Open(dir, disk); err != nil {
		return nil, err
	}
	if p.registry, err = database.Open(p.store, database.Config{Clock: time.Now, Log: log, Memory: p.budget}); err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	grpcListener, httpListener := pipes{bufconn.Listen(1 << 16)}, pipes{bufconn.Listen(1 << 16)}
	if p.server, err = server.Serve(p.registry, grpcListener, httpListener, server.Config{Clock: time.Now, Log: log, Memory: p.budget}); err != nil {
		return nil, errors.Join(err, p.registry.Close(), p.store.Close())
	}
	if p.db, err = p.registry.Database(databaseName); err != nil {
		p.db = nil
	}
	p.dial = []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return grpcListener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}
	if p.conn, err = grpc.NewClient(endpoint, p.dial...); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.data = spannerpb.NewSpannerClient(p.conn)
	if p.flightSQL, err = flightsql.NewClient(endpoint, nil, nil, p.dial...); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// spanner returns the official client.
func (p *process) spanner(ctx context.Context) (*spanner.Client, error) {
	if p.client != nil {
		return p.client, nil
	}
	var err error
	options := []option.ClientOption{option.WithEndpoint(endpoint), option.WithoutAuthentication(), option.WithGRPCConnectionPool(1)}
	for _, o := range p.dial {
		options = append(options, option.WithGRPCDialOption(o))
	}
	p.client, err = spanner.NewClientWithConfig(ctx, databaseName, spanner.ClientConfig{DisableNativeMetrics: true}, options...)
	return p.client, err
}

// sessionOf returns the session for a role, and creates it if necessary; "" stands for no role.
func (p *process) sessionOf(ctx context.Context, role string) (string, error) {
	if name := p.sessions[role]; name != "" {
		return name, nil
	}
	s, err := p.data.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: databaseName, Session: &spannerpb.Session{Multiplexed: true, CreatorRole: role}})
	if err != nil {
		return "", err
	}
	p.sessions[role] = s.Name
	return s.Name, nil
}

// stop ends the server in the same way as SIGTERM does.
func (p *process) stop() error {
	var errs []error
	if p.client != nil {
		p.client.Close()
	}
	if p.flightSQL != nil {
		errs = append(errs, p.flightSQL.Close())
	}
	if p.conn != nil {
		errs = append(errs, p.conn.Close())
	}
	return errors.Join(append(errs, p.server.Close(), p.registry.Close(), p.store.Close())...)
}
