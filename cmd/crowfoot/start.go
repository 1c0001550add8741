package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/otlp"
)

// start serves until the context ends.
func start(ctx context.Context, args []string) error {
	var o crowfoot.Options
	var level slog.Level
	var asJSON, statistics bool
	flags := flag.NewFlagSet("crowfoot start", flag.ExitOnError)
	flags.StringVar(&o.Data, "data", "./crowfoot-data", "directory of the data")
	flags.BoolVar(&o.InMemory, "in-memory", false, "keep the data in memory only")
	flags.StringVar(&o.GRPC, "grpc", "127.0.0.1:9010", "address of the gRPC API")
	flags.StringVar(&o.HTTP, "http", "127.0.0.1:9020", "address of the REST API")
	flags.StringVar(&o.DDLFile, "ddl", "", "file of DDL statements to run in the databases just created")
	flags.Func("database", "projects/P/instances/I/databases/D, created if missing (repeatable)", func(name string) error {
		o.Databases = append(o.Databases, name)
		return nil
	})
	flags.BoolVar(&statistics, "statistics", true, "measure and count what happens, for SPANNER_SYS and /metrics")
	flags.TextVar(&level, "log-level", slog.LevelInfo, "what to log: error, warn, info (slow requests too), debug (every request)")
	flags.BoolVar(&asJSON, "log-json", false, "log as lines of JSON")
	flags.Parse(args)
	if flags.NArg() > 0 {
		return fmt.Errorf("start takes no argument %q", strings.Join(flags.Args(), " "))
	}
	o.NoStatistics = !statistics
	o.Log = newLog(level, asJSON)
	slog.SetDefault(o.Log) // the storage engine's
	s, err := crowfoot.Start(ctx, o)
	if err != nil {
		return err
	}
	exporter, err := otlp.Start(s.Metrics, o.Log)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer exporter.Close() // when the last request has been counted
	fmt.Printf("crowfoot: ready grpc=%s http=%s\n", s.GRPC, s.HTTP)
	<-ctx.Done()
	return s.Close()
}

// newLog writes to the standard error.
func newLog(level slog.Level, asJSON bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if asJSON {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
