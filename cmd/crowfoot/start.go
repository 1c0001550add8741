package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/otlp"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// startSettings are the values of the flags of start.
type startSettings struct {
	options    crowfoot.Options
	statistics bool
	level      slog.Level
	asJSON     bool
}

func newStart() *cobra.Command {
	var s startSettings
	c := &cobra.Command{
		Use:   "start [flags]",
		Short: "Serve databases",
		Long: `Serves databases over gRPC and REST until it is told to stop (SIGTERM, SIGHUP, or an interrupt at the keyboard), and prints one line
when it is ready:

    crowfoot: ready grpc=127.0.0.1:9010 http=127.0.0.1:9020`,
		Example: `  crowfoot start
  crowfoot start --database projects/p/instances/i/databases/d --ddl schema.sql
  SPANNER_EMULATOR_HOST=127.0.0.1:9010 your-application`,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.settle(c.Flags()); err != nil {
				return err
			}
			return withFlag(s.run(c.Context()), c.Flags())
		},
	}
	s.register(c.Flags())
	nameVariables(c.Flags(), "CROWFOOT")
	cobra.CheckErr(c.MarkFlagDirname("data"))
	cobra.CheckErr(c.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp)))
	return c
}

func (s *startSettings) register(flags *pflag.FlagSet) {
	o := &s.options
	flags.SortFlags = false
	flags.StringVar(&o.Data, "data", "./crowfoot-data", "`DIR` of the data, made if missing")
	flags.BoolVar(&o.InMemory, "in-memory", false, "keep the data in memory only")
	flags.StringVar(&o.GRPC, "grpc", "127.0.0.1:9010", "`HOST:PORT` of the gRPC API; port 0 is a free one")
	flags.StringVar(&o.HTTP, "http", "127.0.0.1:9020", "`HOST:PORT` of the REST API and of /metrics")
	flags.StringSliceVar(&o.Databases, "database", nil, "`NAME` of a database, projects/P/instances/I/databases/D, created with its instance if missing (repeatable, or a list with commas)")
	flags.StringVar(&o.DDLFile, "ddl", "", "`FILE` of DDL statements to run in those of --database that are missing")
	flags.StringVar(&o.ProtoDescriptorsFile, "proto-descriptors-file", "", "`FILE` of a serialized FileDescriptorSet (protoc --include_imports --descriptor_set_out) with the types of CREATE PROTO BUNDLE in --ddl")
	flags.Var((*size)(&o.Memory), "memory", "`SIZE` that the process may take, like 2GiB; half of the machine's or container's if it is left out")
	flags.StringSliceVar(&o.Hosts, "http-host", nil, "`NAME` under which HTTP clients reach a loopback address, beside localhost (repeatable, or a list with commas)")
	flags.StringSliceVar(&o.Origins, "cors-origin", nil, "`ORIGIN` of web pages that may send requests, such as https://app.example:8443 (repeatable, or a list with commas)")
	flags.BoolVar(&s.statistics, "statistics", true, "measure and count what happens, for SPANNER_SYS and /metrics")
	flags.Var((*level)(&s.level), "log-level", "`LEVEL` of what to log: error, warn, info (slow requests too), debug (every request)")
	flags.BoolVar(&s.asJSON, "log-json", false, "log as lines of JSON")
}

// settle completes the options. It returns an error if flags contradict each other. If a flag contradicts an
// environment variable, the flag wins.
func (s *startSettings) settle(flags *pflag.FlagSet) error {
	data, inMemory := flags.Lookup("data"), flags.Lookup("in-memory")
	if s.options.InMemory {
		switch from, against := originOf(inMemory), originOf(data); {
		case from == against:
			return usageErrorf("%s and %s contradict each other: leave one out", written(inMemory), written(data))
		case from < against:
			s.options.InMemory = false
		}
	}
	if s.options.DDLFile != "" && len(s.options.Databases) == 0 {
		return usageErrorf("%s needs --database NAME: its statements run in the databases that --database creates", written(flags.Lookup("ddl")))
	}
	if s.options.ProtoDescriptorsFile != "" && s.options.DDLFile == "" {
		return usageErrorf("%s needs --ddl FILE: the statements of that take their types from it", written(flags.Lookup("proto-descriptors-file")))
	}
	if s.options.Memory == 0 {
		s.options.Memory = memory.Default(memory.Machine())
	}
	s.options.NoStatistics = !s.statistics
	s.options.StorageFailed = endStorageFailed
	s.options.Log = newLog(os.Stderr, s.level, s.asJSON)
	return nil
}

// flagsOf maps the fields of Options to the names of the flags that set them.
var flagsOf = map[string]string{
	"Data": "data", "GRPC": "grpc", "HTTP": "http", "Databases": "database", "DDLFile": "ddl", "ProtoDescriptorsFile": "proto-descriptors-file", "Origins": "cors-origin", "Hosts": "http-host",
}

// withFlag explains err, an error of starting the server. If the value of a flag or environment variable has caused
// err, the result names the flag or the variable, and is a usage error. There is one exception: if the operating system
// refused the value, the result is no usage error. Then, for example when another program uses the address, the same
// command line may be right at another time.
func withFlag(err error, flags *pflag.FlagSet) error {
	var option *crowfoot.OptionError
	if !errors.As(err, &option) {
		return err
	}
	named := usageErrorf("%s is %q: %w", written(flags.Lookup(flagsOf[option.Option])), option.Value, option.Reason)
	if errors.As(err, new(*net.OpError)) {
		return fmt.Errorf("%v", named)
	}
	return named
}

// exportLimit is how long a stopping server may take to send its last metrics to an OpenTelemetry collector.
const exportLimit = 2 * time.Second

// run runs the server until ctx ends.
func (s *startSettings) run(ctx context.Context) error {
	slog.SetDefault(s.options.Log) // the storage engine logs to the default logger
	limitHeap(s.options.Memory)
	cpu.SpareThreads()
	server, err := crowfoot.Start(ctx, s.options)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // a signal stopped the server before it was ready
	}
	if err != nil {
		return err
	}
	exporter, err := otlp.Start(server.Metrics, s.options.Log)
	if err != nil {
		return errors.Join(err, server.Close())
	}
	// This runs after server.Close, when the last request has been counted. It sends the last metrics.
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), exportLimit)
		defer cancel()
		exporter.Close(ctx)
	}()
	fmt.Printf("crowfoot: ready grpc=%s http=%s\n", server.GRPC, server.HTTP)
	if !s.asJSON { // a log in JSON already has the warnings as lines
		for _, w := range server.Warnings {
			fmt.Fprintln(os.Stderr, "crowfoot: warning:", w)
		}
	}
	<-ctx.Done()
	s.options.Log.Info("told to stop", "cause", context.Cause(ctx))
	return server.Close()
}

// limitHeap divides total, the bytes of memory that the server may use, and sets Go's memory limit to the heap's share.
// So garbage is collected more often when the heap comes near the limit. limitHeap does nothing if the user has set
// GOMEMLIMIT.
func limitHeap(total int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory.Divide(total).Heap)
	}
}

// endStorageFailed ends the process at once, because the storage has failed. If the file system has lost written data,
// a server that continued would lose more.
func endStorageFailed(cause error) {
	fmt.Fprintf(os.Stderr, "crowfoot: the storage has failed, every acknowledged commit is on disk, start again when it works: %v\n", cause)
	os.Exit(exitStorage)
}

func newLog(to io.Writer, level slog.Level, asJSON bool) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: plainError}
	if asJSON {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// plainError replaces an error in a log line by its text, because slog's text handler would also print the stack traces
// that errors of the storage engine contain.
func plainError(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}
