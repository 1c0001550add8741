package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	admin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
	"github.com/crowfoot-db/crowfoot/version"
)

// connection connects the command import or export to its database. While the command runs, the connection observes
// whether the server answers.
type connection struct {
	endpoint, database string
	// If makesMissing is true, the method connect creates the database if it does not exist.
	makesMissing bool
	server       *connectivity
	screen       *transferScreen
}

func (s *connection) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.database, "database", "", "`NAME` of the database, projects/P/instances/I/databases/D")
	flags.StringVar(&s.endpoint, "endpoint", "", "`HOST:PORT` of a server that speaks plain text; SPANNER_EMULATOR_HOST, or else Cloud Spanner, if it is left out")
}

func (s *connection) check(command string) error {
	switch {
	case s.database == "":
		return usageErrorf("%s needs --database projects/P/instances/I/databases/D", command)
	case !databaseName.MatchString(s.database):
		return usageErrorf("--database is %q: want projects/P/instances/I/databases/D", s.database)
	}
	return nil
}

// with connects to the server and calls the function work with a client and a context. Standard error shows when the
// command waits for the server. The context ends when calls to the server have failed for transfer.AwayLimit.
func (s *connection) with(ctx context.Context, agent string, work func(context.Context, *spanner.Client) error) error {
	if s.endpoint != "" {
		os.Setenv("SPANNER_EMULATOR_HOST", s.endpoint) // makes the client connect without TLS
	}
	s.server = newConnectivity(cmp.Or(os.Getenv("SPANNER_EMULATOR_HOST"), "Cloud Spanner"))
	ctx, stop := s.server.limit(ctx, transfer.AwayLimit)
	defer stop()
	s.screen = newTransferScreen(os.Stderr, s.server)
	defer s.screen.close()
	client, err := s.connect(ctx, agent)
	if err == nil {
		err = work(ctx, client)
		client.Close()
	}
	if err == nil || errors.As(err, &statusError{}) {
		return err
	}
	return s.incomplete(ctx, err, "")
}

// incomplete returns the error of an import or export that ended too early. The parameter named what is a text for the
// user: which part was done, and how to continue.
func (s *connection) incomplete(ctx context.Context, err error, what string) error {
	status := exitFailure
	if cause := context.Cause(ctx); cause != nil {
		err, status = cause, exitIncomplete
	}
	if errors.As(err, &errForeign{}) {
		status = exitFailure
	}
	text := inServersWords(err).Error()
	if what != "" {
		text += "\n" + what
	}
	return statusError{errors.New(text), status}
}

// connect returns a client of the database, after it has sent a first query and the server has answered.
func (s *connection) connect(ctx context.Context, agent string) (*spanner.Client, error) {
	config := spanner.ClientConfig{UserAgent: agent + "/" + version.Get().Version, CallOptions: transfer.CallOptions()}
	if s.makesMissing {
		if err := s.makeDatabase(ctx); err != nil {
			return nil, err
		}
	}
	client, err := newClient(ctx, s.database, config, s.server.options()...)
	if err != nil {
		return nil, err
	}
	err = s.server.answered(ctx, func(ctx context.Context) error {
		return client.Single().Query(ctx, spanner.NewStatement("SELECT 1")).Do(func(*spanner.Row) error { return nil })
	})
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// describe reads the definition of the table with this name.
func (s *connection) describe(ctx context.Context, client *spanner.Client, name string) (table *bulk.TableInfo, err error) {
	err = s.server.answered(ctx, func(ctx context.Context) error {
		table, err = bulk.Describe(ctx, client, name)
		return err
	})
	return table, err
}

// describeAll reads the definitions of all tables. It returns them in a map by the table's name in lower case.
func (s *connection) describeAll(ctx context.Context, client *spanner.Client) (map[string]*bulk.TableInfo, error) {
	tables := map[string]*bulk.TableInfo{}
	err := s.server.answered(ctx, func(ctx context.Context) error {
		all, err := bulk.DescribeAll(ctx, client)
		for _, t := range all {
			tables[strings.ToLower(t.Name)] = t
		}
		return err
	})
	return tables, err
}

// dialFlight returns a connection for Arrow Flight SQL, which not every server has. It returns nil if the database is
// on Cloud Spanner.
func (s *connection) dialFlight() (*grpc.ClientConn, error) {
	host := os.Getenv("SPANNER_EMULATOR_HOST") // the value of --endpoint, if given
	if host == "" {
		return nil, nil
	}
	return grpc.NewClient("passthrough:///"+host, append(s.server.dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

// makeDatabase creates the database if it does not exist.
func (s *connection) makeDatabase(ctx context.Context) error {
	client, err := admin.NewDatabaseAdminClient(ctx, s.server.options()...)
	if err != nil {
		return err
	}
	defer client.Close()
	err = s.server.answered(ctx, func(ctx context.Context) error {
		_, err := client.GetDatabase(ctx, &databasepb.GetDatabaseRequest{Name: s.database})
		return err
	})
	if grpcstatus.Code(err) != codes.NotFound {
		return err
	}
	instance, id, _ := strings.Cut(s.database, "/databases/")
	operation, err := client.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{Parent: instance, CreateStatement: "CREATE DATABASE `" + id + "`"})
	if err != nil {
		return err
	}
	if _, err := operation.Wait(ctx); err != nil {
		return err
	}
	s.screen.clear()
	fmt.Println("made the database " + s.database)
	return nil
}

// created returns the time at which the database was created, or the zero time if the user may not read it.
func (s *connection) created(ctx context.Context) (created time.Time, err error) {
	client, err := admin.NewDatabaseAdminClient(ctx, s.server.options()...)
	if err != nil {
		return created, err
	}
	defer client.Close()
	err = s.server.answered(ctx, func(ctx context.Context) error {
		d, err := client.GetDatabase(ctx, &databasepb.GetDatabaseRequest{Name: s.database})
		if err == nil {
			created = d.GetCreateTime().AsTime()
		}
		return err
	})
	if grpcstatus.Code(err) == codes.PermissionDenied {
		err = nil
	}
	return created, err
}

// databaseDDL returns the DDL statements that define the database, and the descriptors of its proto bundle.
func (s *connection) databaseDDL(ctx context.Context) (statements []string, protos []byte, err error) {
	client, err := admin.NewDatabaseAdminClient(ctx, s.server.options()...)
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	err = s.server.answered(ctx, func(ctx context.Context) error {
		ddl, err := client.GetDatabaseDdl(ctx, &databasepb.GetDatabaseDdlRequest{Database: s.database})
		statements, protos = ddl.GetStatements(), ddl.GetProtoDescriptors()
		return err
	})
	return statements, protos, err
}

// define runs DDL statements in the database. protos holds the proto descriptors for a proto bundle that the statements
// create.
func (s *connection) define(ctx context.Context, statements []string, protos []byte) error {
	if len(statements) == 0 {
		return nil
	}
	client, err := admin.NewDatabaseAdminClient(ctx, s.server.options()...)
	if err != nil {
		return err
	}
	defer client.Close()
	operation, err := client.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: s.database, Statements: statements, ProtoDescriptors: protos})
	if err != nil {
		return err
	}
	return operation.Wait(ctx)
}
