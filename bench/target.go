package bench

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
)

// embeddedDatabase is the database of the embedded server.
const embeddedDatabase = "projects/bench/instances/bench/databases/bench"

// target is the server to measure, and its database.
type target struct {
	server
	what       string // name of the server in the report
	database   string
	executable string // of the embedded server; "" for this very program
	root       string // folder of the embedded server's data
	remove     bool   // true if close removes root
	admin      *database.DatabaseAdminClient
}

// open connects to the server that e names. If e names no database, it first starts the embedded server from an
// executable ("" is this very program). The clients use the options.
func open(ctx context.Context, e Endpoint, executable string, options ...option.ClientOption) (t *target, err error) {
	t = &target{server: server{address: e.Address, options: options}, database: e.Database}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	switch {
	case e.Database == "":
		t.database, t.what = embeddedDatabase, "Crowfoot, embedded: a process of its own, on this machine's disk"
		t.executable = executable
		if err := t.place(e.Dir); err != nil {
			return t, err
		}
		if err := t.spawn(ctx); err != nil {
			return t, err
		}
	case e.Address != "":
		t.what = e.Address
		if err := answers(e.Address); err != nil {
			return t, err
		}
	default:
		t.what = "Cloud Spanner"
	}
	if e.PID != 0 {
		t.cpu = pid(e.PID).cpu
		if _, err := t.cpu(); err != nil {
			return t, fmt.Errorf("--pid %d: %w", e.PID, err)
		}
	}
	if err := t.connect(ctx); err != nil {
		return t, err
	}
	return t, t.probe(ctx)
}

// place chooses the folder of the embedded server.
func (t *target) place(dir string) (err error) {
	t.root = dir
	if dir == "" {
		t.root, err = os.MkdirTemp("", "crowfoot-bench-")
		t.remove = err == nil
	}
	return err
}

func (t *target) data() string { return filepath.Join(t.root, "data") }

// spawn starts the embedded server. It may be called again after the server has ended.
func (t *target) spawn(ctx context.Context) error {
	return t.start(ctx, t.executable, t.startArguments(t.data())...)
}

// startArguments returns the arguments of a server on free ports. The server does not log slow requests, because
// there are many of them at saturation.
func (t *target) startArguments(data string) []string {
	return []string{"start", "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--database", t.database, "--log-level", "warn"}
}

// dialLimit is the longest time that an endpoint may take to accept a connection. The official client would retry
// without end.
const dialLimit = 5 * time.Second

func answers(address string) error {
	c, err := net.DialTimeout("tcp", address, dialLimit)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", address, err)
	}
	return c.Close()
}

// connect opens the clients. It closes those that were open before.
func (t *target) connect(ctx context.Context) (err error) {
	if err := t.disconnect(); err != nil {
		return err
	}
	if err := t.server.connect(ctx, t.database); err != nil {
		return fmt.Errorf("connect to %s: %w", t.what, err)
	}
	if t.admin, err = database.NewDatabaseAdminClient(ctx, plainText(t.address)...); err != nil {
		return fmt.Errorf("connect to %s: %w", t.what, err)
	}
	return nil
}

// probeLimit is the longest time that the first query may take, including authentication.
const probeLimit = 30 * time.Second

// probe runs a trivial query, to check that the database exists.
func (t *target) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	it := t.client.Single().Query(ctx, spanner.NewStatement("SELECT 1"))
	defer it.Stop()
	_, err := it.Next()
	switch spanner.ErrCode(err) {
	case codes.OK:
		return nil
	case codes.NotFound:
		return fmt.Errorf("there is no database %s at %s: create it first", t.database, t.what)
	}
	return fmt.Errorf("first query at %s: %w", t.what, err)
}

// createTables runs DDL statements. The run never drops the tables that they create.
func (t *target) createTables(ctx context.Context, ddl ...string) error {
	op, err := t.admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: t.database, Statements: ddl})
	if err == nil {
		err = op.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	return nil
}

// splitRequest is the largest number of split points in one request:
// https://cloud.google.com/spanner/quotas#split-point-limits.
const splitRequest = 100

// split adds split points at the given keys. If the server lacks the call, as Google's emulator does, the note says
// so.
func (t *target) split(ctx context.Context, table string, keys []string) (note string, err error) {
	for part := range slices.Chunk(keys, splitRequest) {
		r := &databasepb.AddSplitPointsRequest{Database: t.database, Initiator: "crowfoot bench"}
		for _, k := range part {
			key := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(k)}}
			r.SplitPoints = append(r.SplitPoints, &databasepb.SplitPoints{Table: table, Keys: []*databasepb.SplitPoints_Key{{KeyParts: key}}})
		}
		_, err = t.admin.AddSplitPoints(ctx, r)
		if status.Code(err) == codes.Unimplemented {
			return "this server has no AddSplitPoints: the keys are scattered, the splits are its own", nil
		}
		if err != nil {
			return "", fmt.Errorf("split %s: %w", table, err)
		}
	}
	return fmt.Sprintf("%s has %d split points", table, len(keys)), nil
}

// filled reports whether a table has at least this number of rows.
func (t *target) filled(ctx context.Context, table string, rows int) (bool, error) {
	it := t.client.Single().Query(ctx, spanner.NewStatement("SELECT COUNT(*) FROM "+table))
	defer it.Stop()
	r, err := it.Next()
	if err != nil {
		return false, err
	}
	var n int64
	err = r.Columns(&n)
	return n >= int64(rows), err
}

func (t *target) disconnect() (err error) {
	t.server.disconnect()
	if t.admin != nil {
		err = t.admin.Close()
	}
	t.admin = nil
	return err
}

// close stops the embedded server and removes its temporary data.
func (t *target) close() error {
	errs := []error{t.disconnect(), t.server.stop()}
	if t.executable != "" && filepath.Dir(t.executable) == t.root { // a copy of this program
		errs = append(errs, os.Remove(t.executable))
	}
	if t.remove {
		errs = append(errs, os.RemoveAll(t.root))
	}
	return errors.Join(errs...)
}

// drain reads a stream to its end and returns the number of rows.
func drain(it *spanner.RowIterator) (rows int, err error) {
	err = it.Do(func(*spanner.Row) error {
		rows++
		return nil
	})
	return rows, err
}

// rowsOf reads a stream to its end and fails unless it has want rows.
func rowsOf(it *spanner.RowIterator, want int) (rows int, err error) {
	rows, err = drain(it)
	if err == nil && rows != want {
		err = fmt.Errorf("got %d rows instead of %d", rows, want)
	}
	return rows, err
}

// has reports whether a view of INFORMATION_SCHEMA has a row with this name.
func (t *target) has(ctx context.Context, view, column, name string) (bool, error) {
	rows, err := drain(t.client.Single().Query(ctx, spanner.Statement{
		SQL: "SELECT 1 FROM INFORMATION_SCHEMA." + view + " WHERE TABLE_SCHEMA = '' AND " + column + " = @name", Params: map[string]any{"name": name},
	}))
	return rows > 0, err
}

// copyLimit is the longest time that the server may take for the first copy.
const copyLimit = 10 * time.Minute
