package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/bench"
)

// embeddedDatabase is the database of the embedded server.
const embeddedDatabase = "projects/bench/instances/bench/databases/bench"

// Target is the server that is measured, with its database and clients.
type Target struct {
	Server
	Description  string // name of the server in the report
	DatabaseName string
	executable   string // of the embedded server; "" for this very program
	Root         string // folder of the embedded server's data
	remove       bool   // true if Close removes Root
	Admin        *database.DatabaseAdminClient
}

// OpenTarget connects to the server that the parameter e names. If e names no database, OpenTarget first starts the
// embedded server from an executable ("" is this very program). All clients use the options.
func OpenTarget(ctx context.Context, e bench.Endpoint, executable string, options ...option.ClientOption) (t *Target, err error) {
	t = &Target{Server: Server{Address: e.Address, Options: options}, DatabaseName: e.Database}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	switch {
	case e.Database == "":
		t.DatabaseName, t.Description = embeddedDatabase, "Crowfoot, embedded: a process of its own, on this machine's disk"
		t.executable = executable
		if err := t.place(e.Dir); err != nil {
			return t, err
		}
		if err := t.StartServer(ctx); err != nil {
			return t, err
		}
	case e.Address != "":
		t.Description = e.Address
		if err := answers(e.Address); err != nil {
			return t, err
		}
	default:
		t.Description = "Cloud Spanner"
	}
	if e.PID != 0 {
		t.CPU = PID(e.PID).CPU
		if _, err := t.CPU(); err != nil {
			return t, fmt.Errorf("--pid %d: %w", e.PID, err)
		}
	}
	if err := t.Connect(ctx); err != nil {
		return t, err
	}
	return t, t.probe(ctx)
}

// place chooses the folder for the data of the embedded server: dir or, if that is "", a temporary folder.
func (t *Target) place(dir string) (err error) {
	t.Root = dir
	if dir == "" {
		t.Root, err = os.MkdirTemp("", "crowfoot-bench-")
		t.remove = err == nil
	}
	return err
}

func (t *Target) Data() string { return filepath.Join(t.Root, "data") }

// StartServer starts the embedded server. It may be called again after the server's process has ended.
func (t *Target) StartServer(ctx context.Context) error {
	return t.Start(ctx, t.executable, t.startArguments(t.Data())...)
}

// startArguments returns the command-line arguments of a server that listens on free ports. The server does not log
// slow requests, because at saturation there are many.
func (t *Target) startArguments(data string) []string {
	return []string{"start", "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--database", t.DatabaseName, "--log-level", "warn"}
}

// dialLimit is the longest time that the endpoint may take to accept a connection. Without this limit, the official
// client would retry for ever.
const dialLimit = 5 * time.Second

func answers(address string) error {
	c, err := net.DialTimeout("tcp", address, dialLimit)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", address, err)
	}
	return c.Close()
}

// Connect opens the clients. It closes the clients that were open before.
func (t *Target) Connect(ctx context.Context) (err error) {
	if err := t.Disconnect(); err != nil {
		return err
	}
	if err := t.Server.Connect(ctx, t.DatabaseName); err != nil {
		return fmt.Errorf("connect to %s: %w", t.Description, err)
	}
	if t.Admin, err = database.NewDatabaseAdminClient(ctx, PlainTextOptions(t.Address)...); err != nil {
		return fmt.Errorf("connect to %s: %w", t.Description, err)
	}
	return nil
}

// ProbeTimeout is the longest time that the first query may take, including authentication.
const ProbeTimeout = 30 * time.Second

// probe runs a trivial query, to check that the database exists.
func (t *Target) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	it := t.Client.Single().Query(ctx, spanner.NewStatement("SELECT 1"))
	defer it.Stop()
	_, err := it.Next()
	switch spanner.ErrCode(err) {
	case codes.OK:
		return nil
	case codes.NotFound:
		return fmt.Errorf("there is no database %s at %s: create it first", t.DatabaseName, t.Description)
	}
	return fmt.Errorf("first query at %s: %w", t.Description, err)
}

// CreateTables runs DDL statements. The tables that they create stay after the run.
func (t *Target) CreateTables(ctx context.Context, ddl ...string) error {
	op, err := t.Admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: t.DatabaseName, Statements: ddl})
	if err == nil {
		err = op.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	return nil
}

// MaxSplitsPerRequest is the largest number of split points in one request:
// https://cloud.google.com/spanner/quotas#split-point-limits.
const MaxSplitsPerRequest = 100

// AddSplitPoints adds split points to a table at the given keys. The result note is a sentence for the report: how many
// split points the table has, or that the server does not implement this call. Google's emulator does not implement it.
func (t *Target) AddSplitPoints(ctx context.Context, table string, keys []string) (note string, err error) {
	for part := range slices.Chunk(keys, MaxSplitsPerRequest) {
		r := &databasepb.AddSplitPointsRequest{Database: t.DatabaseName, Initiator: "crowfoot bench"}
		for _, k := range part {
			key := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(k)}}
			r.SplitPoints = append(r.SplitPoints, &databasepb.SplitPoints{Table: table, Keys: []*databasepb.SplitPoints_Key{{KeyParts: key}}})
		}
		_, err = t.Admin.AddSplitPoints(ctx, r)
		if status.Code(err) == codes.Unimplemented {
			return "this server has no AddSplitPoints: the keys are scattered, the splits are its own", nil
		}
		if err != nil {
			return "", fmt.Errorf("split %s: %w", table, err)
		}
	}
	return fmt.Sprintf("%s has %d split points", table, len(keys)), nil
}

// Filled reports whether a table has at least this number of rows.
func (t *Target) Filled(ctx context.Context, table string, rows int) (bool, error) {
	it := t.Client.Single().Query(ctx, spanner.NewStatement("SELECT COUNT(*) FROM "+table))
	defer it.Stop()
	r, err := it.Next()
	if err != nil {
		return false, err
	}
	var n int64
	err = r.Columns(&n)
	return n >= int64(rows), err
}

func (t *Target) Disconnect() (err error) {
	t.Server.Disconnect()
	if t.Admin != nil {
		err = t.Admin.Close()
	}
	t.Admin = nil
	return err
}

// Close stops the embedded server and removes its temporary data.
func (t *Target) Close() error {
	errs := []error{t.Disconnect(), t.Server.Stop()}
	if t.executable != "" && filepath.Dir(t.executable) == t.Root { // a copy of this program
		errs = append(errs, os.Remove(t.executable))
	}
	if t.remove {
		errs = append(errs, os.RemoveAll(t.Root))
	}
	return errors.Join(errs...)
}

// Drain reads a stream to its end and returns the number of rows.
func Drain(it *spanner.RowIterator) (rows int, err error) {
	err = it.Do(func(*spanner.Row) error {
		rows++
		return nil
	})
	return rows, err
}

// ExpectRows reads a stream to its end. It returns an error if the stream does not have the wanted number of rows.
func ExpectRows(it *spanner.RowIterator, want int) (rows int, err error) {
	rows, err = Drain(it)
	if err == nil && rows != want {
		err = fmt.Errorf("got %d rows instead of %d", rows, want)
	}
	return rows, err
}

// Has reports whether a view of INFORMATION_SCHEMA has a row with this name.
func (t *Target) Has(ctx context.Context, view, column, name string) (bool, error) {
	rows, err := Drain(t.Client.Single().Query(ctx, spanner.Statement{
		SQL: "SELECT 1 FROM INFORMATION_SCHEMA." + view + " WHERE TABLE_SCHEMA = '' AND " + column + " = @name", Params: map[string]any{"name": name},
	}))
	return rows > 0, err
}

// CopyTimeout is the longest time that the server may take to make the first columnar copy of a table.
const CopyTimeout = 10 * time.Minute
