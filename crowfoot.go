// Package crowfoot embeds a Crowfoot server in a Go process: a database server
// that speaks Cloud Spanner's API, on an engine in the same process.
//
//	srv, err := crowfoot.Start(ctx, crowfoot.Options{InMemory: true})
//	defer srv.Close()
//	os.Setenv("SPANNER_EMULATOR_HOST", srv.GRPC)
//
// In a test, one call does it all:
//
//	srv := crowfoot.ForTest(t, "projects/p/instances/i/databases/d", "CREATE TABLE ...")
//
// Imports of this module: database, kv/pebble, memory, schema/syntax, server, server/listener, sql/spill, stats/metrics, table, usererror, version.
package crowfoot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/version"
)

// Options configure a server.
type Options struct {
	Data     string // directory of the data; created if it does not exist
	InMemory bool   // keeps all data in memory, not on disk; Data is then ignored
	GRPC     string // address of the gRPC listener; "" is a free port of 127.0.0.1
	HTTP     string // address of the HTTP listener for REST; "" is a free port of 127.0.0.1
	// Databases lists the names of databases. When the server starts, it creates those that do not exist, and their
	// instances.
	Databases []string // projects/P/instances/I/databases/D
	// DDL are the statements that create the schema of each database that the server creates.
	DDL []string
	// DDLFile is the name of a file with DDL statements, which the server uses instead of the field DDL. Each statement
	// ends in a semicolon. Errors name file, line and column.
	DDLFile string
	// ProtoDescriptorsFile is the name of a file with a serialized FileDescriptorSet, as protoc writes it with
	// --include_imports and --descriptor_set_out. The DDL statements take the types of the proto bundle from this file.
	ProtoDescriptorsFile string
	// Origins are the origins of web pages that may send requests, such as https://app.example:8443. Requests from
	// other origins are refused.
	Origins []string
	// Hosts are the names of the machine, besides localhost, by which clients may reach an HTTP listener on the
	// loopback interface. The listener refuses requests whose header Host has another name.
	Hosts []string
	// NoStatistics turns off the tables of SPANNER_SYS, the metrics by API method and the timelines of transactions.
	// The server then does not measure anything for them.
	NoStatistics bool
	// Memory is how many bytes of memory the server may take, at least memory.MinBytes; 0 means a share of the memory
	// of the machine or container. The data of an in-memory server is not included. If a process has several servers,
	// each of them may take Memory bytes.
	Memory int64
	Log    *slog.Logger // nil discards the log
	// StorageFailed, if it is not nil, is called once if the storage can no longer guarantee that writes are durable,
	// for example because a sync of its log has failed. At that time every acknowledged commit is on disk; from then on
	// every request fails. StorageFailed may end the process. It must not call Close, because the goroutine that calls
	// StorageFailed may have locked mutexes that Close needs.
	StorageFailed func(error)
}

// Server is a running server.
type Server struct {
	GRPC string // HOST:PORT of the gRPC API, for SPANNER_EMULATOR_HOST
	HTTP string // HOST:PORT of the REST API
	// Metrics is the source of the metrics that the HTTP listener serves at /metrics.
	Metrics prometheus.Gatherer
	// Warnings are messages that a person should read. The server produced them while it started.
	Warnings []string

	front    *server.Server
	registry *database.Registry
	store    *pebble.Store
	spill    *spill.Dir // nil if the data is in memory
	budget   *memory.Budget
	kept     *memory.Budget
	log      *slog.Logger
}

// memoryDir is the name of the data directory of an in-memory server, whose file system is in memory, too.
const memoryDir = "crowfoot"

// spillDir is the name of the directory, within the data directory, for temporary files of statements.
const spillDir = "spill"

// Start opens the data and starts to serve it. ctx limits only the start; Close ends the server. During the start, the
// HTTP listener already answers: /healthz says that the server is alive, and /readyz that it is not ready
// (starting.go).
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := o.settle(); err != nil {
		return nil, err
	}
	ddl, err := o.ddl()
	if err != nil {
		return nil, err
	}
	starting, err := serveStarting(orFreePort(o.HTTP))
	if err != nil {
		return nil, &OptionError{"HTTP", o.HTTP, err}
	}
	o.logStart()
	s := &Server{log: o.Log}
	if err := s.open(o); err != nil {
		return nil, errors.Join(err, starting.close())
	}
	if err := s.createDatabases(ctx, o, ddl); err != nil {
		return nil, errors.Join(err, starting.close(), s.Close())
	}
	if err := s.listen(o, starting); err != nil {
		return nil, errors.Join(err, starting.close(), s.Close())
	}
	o.Log.Info("ready", "grpc", s.GRPC, "http", s.HTTP)
	return s, nil
}

// logStart logs the server's version, its data directory and its memory.
func (o *Options) logStart() {
	build, data := version.Get(), o.Data
	if o.InMemory {
		data = "in memory"
	}
	o.Log.Info("starting", "version", build.Version, "commit", build.Commit, "data", data, "memory_bytes", o.Memory)
}

func (s *Server) open(o Options) (err error) {
	fs, dir := vfs.Default, o.Data
	if o.InMemory {
		fs, dir = vfs.NewMem(), memoryDir
	}
	parts := memory.Divide(o.Memory)
	s.budget, s.kept = memory.NewBudget(parts.Requests), memory.NewBudget(parts.Kept)
	if s.store, err = pebble.OpenWithCache(dir, fs, parts.BlockCache); err != nil {
		return err
	}
	if s.store.Recovered() {
		o.Log.Info("the data directory was not closed in order: what its write-ahead log has is recovered", "data", o.Data)
	}
	s.store.OnFailure(func(cause error) {
		o.Log.Error("storage failed", slog.Any("error", cause))
		if o.StorageFailed != nil {
			o.StorageFailed(cause)
		}
	})
	cfg := database.Config{Clock: time.Now, Log: o.Log, NoStatistics: o.NoStatistics, Memory: s.budget, Kept: s.kept}
	if !o.InMemory {
		if s.spill, err = spill.Open(fs, fs.PathJoin(dir, spillDir)); err != nil {
			return errors.Join(err, s.store.Close())
		}
		cfg.Spill = s.spill
	}
	s.registry, err = database.Open(s.store, cfg)
	if err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.registry.CPU().TaskFrom("compaction", func() time.Duration { used, _ := s.store.CPU(); return used })
	s.registry.CPU().TaskFrom("flush", func() time.Duration { _, used := s.store.CPU(); return used })
	return nil
}

// createDatabases creates those databases of Options that do not exist. An existing database keeps its schema.
func (s *Server) createDatabases(ctx context.Context, o Options, ddl script) error {
	for _, name := range o.Databases {
		if d, err := s.registry.Database(name); err == nil {
			if len(ddl.statements) > 0 {
				s.checkExisting(ctx, d, ddl)
			}
			continue
		}
		if err := s.createInstance(name); err != nil {
			return err
		}
		if _, err := s.registry.CreateDatabase(ctx, name, ddl.texts(), ddl.descriptors); err != nil {
			return fmt.Errorf("create %s: %w", name, ddl.locate(err))
		}
	}
	return nil
}

// createInstance creates the instance of a database if it does not exist.
func (s *Server) createInstance(databaseName string) error {
	name, _, _ := strings.Cut(databaseName, "/databases/")
	if _, err := s.registry.Instance(name); err == nil {
		return nil
	}
	_, err := s.registry.CreateInstance(database.Instance{
		Name: name, DisplayName: name[strings.LastIndexByte(name, '/')+1:], NodeCount: 1, ProcessingUnits: 1000,
	})
	return err
}

// listen starts the servers of both APIs, gRPC and HTTP. The HTTP server takes over the listener of starting, the
// server that has answered requests until now.
func (s *Server) listen(o Options, starting *starting) error {
	grpcListener, err := net.Listen("tcp", orFreePort(o.GRPC))
	if err != nil {
		return &OptionError{"GRPC", o.GRPC, err}
	}
	httpListener, err := starting.handOver()
	if err != nil {
		return errors.Join(err, grpcListener.Close())
	}
	s.GRPC, s.HTTP = grpcListener.Addr().String(), httpListener.Addr().String()
	s.front, err = server.Serve(s.registry, grpcListener, httpListener, server.Config{
		Clock: time.Now, Log: o.Log, NoStatistics: o.NoStatistics, Memory: s.budget,
		Descriptors: descriptors(), Origins: o.Origins, Hosts: o.Hosts, Checkpoint: s.copies(o),
		Collectors: []prometheus.Collector{engineMetrics(s.store, s.spill), memoryLimit(o.Memory)},
	})
	if err != nil {
		return errors.Join(err, grpcListener.Close())
	}
	s.Metrics = s.front.Metrics()
	o.warn(grpcListener.Addr(), httpListener.Addr())
	return nil
}

// copies returns the function that copies the data directory, or nil if the data is in memory.
func (s *Server) copies(o Options) func(ctx context.Context, to string) error {
	if o.InMemory {
		return nil
	}
	return s.store.Checkpoint
}

// descriptors returns how many file descriptors the process may use for connections. From the number of descriptors
// that the process may open, it subtracts those that the store needs for its files, and those that are reserved for
// everything else, such as the files of a copy of the data directory (see otherFiles).
func descriptors() int {
	limit, store := pebble.Files()
	return limit - store - min(limit/8, otherFiles)
}

// otherFiles is the number of file descriptors that are reserved for everything except connections and the store's
// files. If the process may open only few files, an eighth of its limit is reserved instead.
const otherFiles = 256

func orFreePort(addr string) string {
	if addr == "" {
		return "127.0.0.1:0"
	}
	return addr
}

// Close ends requests, background work and the storage engine, in this order.
func (s *Server) Close() error {
	s.log.Info("stopping")
	var front io.Closer
	if s.front != nil {
		front = s.front
	}
	var errs []error
	for _, c := range []io.Closer{front, s.registry, s.store} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		s.log.Info("stopped")
	}
	return err
}

// TB has the methods of testing.TB that ForTest needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Setenv(key, value string)
}

// ForTest starts a server in memory with one database, sets SPANNER_EMULATOR_HOST to its address, and stops the server
// when the test ends.
func ForTest(t TB, databaseName string, ddl ...string) *Server {
	t.Helper()
	s, err := Start(context.Background(), Options{InMemory: true, Databases: []string{databaseName}, DDL: ddl})
	if err != nil {
		t.Fatalf("crowfoot: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Fatalf("crowfoot: close: %v", err)
		}
	})
	t.Setenv("SPANNER_EMULATOR_HOST", s.GRPC)
	return s
}
