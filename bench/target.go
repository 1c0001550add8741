package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// target is the server that is measured, with its database.
type target struct {
	server
	what       string // for the report
	database   string
	executable string // of the embedded server; "" is this very program
	root       string // folder of the embedded server's data
	remove     bool   // root, at the end
	admin      *database.DatabaseAdminClient
}

// open starts the embedded server, from an executable ("" is this very program), or finds the one that is named. The client has further options.
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

// place finds a folder for the embedded server.
func (t *target) place(dir string) (err error) {
	t.root = dir
	if dir == "" {
		t.root, err = os.MkdirTemp("", "crowfoot-bench-")
		t.remove = err == nil
	}
	return err
}

func (t *target) data() string { return filepath.Join(t.root, "data") }

// spawn starts the embedded server, again if it has ended.
func (t *target) spawn(ctx context.Context) error {
	return t.start(ctx, t.executable, t.startArguments(t.data())...)
}

// startArguments are those of a server on free ports. It does not log slow requests: at saturation many are.
func (t *target) startArguments(data string) []string {
	return []string{"start", "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--database", t.database, "--log-level", "warn"}
}

// dialLimit is how long an endpoint may take to accept a connection. The client itself would try without end.
const dialLimit = 5 * time.Second

func answers(address string) error {
	c, err := net.DialTimeout("tcp", address, dialLimit)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", address, err)
	}
	return c.Close()
}

// connect makes the clients, in place of those there were.
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

// probeLimit is how long the first query may take, credentials and all.
const probeLimit = 30 * time.Second

// probe asks for nothing, to know that the database is there.
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

// createDatabase makes the database if it is missing. Its instance must be there.
func (e Endpoint) createDatabase(ctx context.Context) error {
	c, err := database.NewDatabaseAdminClient(ctx, plainText(e.Address)...)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	_, err = c.GetDatabase(ctx, &databasepb.GetDatabaseRequest{Name: e.Database})
	if status.Code(err) != codes.NotFound {
		return err
	}
	instance, name, _ := strings.Cut(e.Database, "/databases/")
	op, err := c.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{Parent: instance, CreateStatement: "CREATE DATABASE `" + name + "`"})
	if err == nil {
		_, err = op.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", e.Database, err)
	}
	return nil
}

// createTables runs DDL; what it creates stays in the database.
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

// splitRequest is how many split points one request may hold: https://cloud.google.com/spanner/quotas#split-point-limits.
const splitRequest = 100

// split asks for split points before the given keys. If the server does not have the call, like
// Google's emulator, the note says so.
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

// filled says whether a table has at least so many rows.
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
	if t.executable != "" && filepath.Dir(t.executable) == t.root { // the copy of this program
		errs = append(errs, os.Remove(t.executable))
	}
	if t.remove {
		errs = append(errs, os.RemoveAll(t.root))
	}
	return errors.Join(errs...)
}

// drain reads a stream to its end and counts the rows.
func drain(it *spanner.RowIterator) (rows int, err error) {
	err = it.Do(func(*spanner.Row) error {
		rows++
		return nil
	})
	return rows, err
}

// rowsOf reads a stream to its end and wants so many rows.
func rowsOf(it *spanner.RowIterator, want int) (rows int, err error) {
	rows, err = drain(it)
	if err == nil && rows != want {
		err = fmt.Errorf("got %d rows instead of %d", rows, want)
	}
	return rows, err
}

// oneLine is the text of an error without the client's line breaks and request numbers.
func oneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), ", requestID = ")
	return strings.Join(strings.Fields(text), " ")
}
