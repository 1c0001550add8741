package watch

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// SpannerTable keeps checkpoints in a table of a Spanner database, which may be the watched database or another. The
// table has the form that Google's Java library Spanner Change Watcher uses, so either library can continue where the
// other has stopped. The table has no column for Checkpoint.Position. So if only a part of a transaction was handled,
// the whole transaction comes again.
//
// The Java library stores a timestamp as soon as it has delivered the first row with that timestamp. So if the Java
// library is stopped within a transaction, the other rows of the transaction are lost, even if this package continues
// from the stored timestamp.
type SpannerTable struct {
	Client *spanner.Client
	// Table is the name of the table; "" is LAST_SEEN_COMMIT_TIMESTAMPS.
	Table string
	// NoCreate makes Check return an error if the table is missing. Otherwise Check creates it.
	NoCreate bool
	// ClientOptions are the options with which Client was made. The admin client that creates the table needs them,
	// too.
	ClientOptions []option.ClientOption
}

// lastSeenColumns are the columns of the table. All but the last form its key.
var lastSeenColumns = []struct{ name, typ string }{
	{"DATABASE_NAME", "STRING(MAX) NOT NULL"},
	{"TABLE_CATALOG", "STRING(MAX) NOT NULL"},
	{"TABLE_SCHEMA", "STRING(MAX) NOT NULL"},
	{"TABLE_NAME", "STRING(MAX) NOT NULL"},
	{"SHARD_ID_BOOL", "BOOL"},
	{"SHARD_ID_BYTES", "BYTES(MAX)"},
	{"SHARD_ID_DATE", "DATE"},
	{"SHARD_ID_FLOAT64", "FLOAT64"},
	{"SHARD_ID_INT64", "INT64"},
	{"SHARD_ID_STRING", "STRING(MAX)"},
	{"SHARD_ID_TIMESTAMP", "TIMESTAMP"},
	{"LAST_SEEN_COMMIT_TIMESTAMP", "TIMESTAMP NOT NULL"},
}

func lastSeenNames() []string {
	var names []string
	for _, c := range lastSeenColumns {
		names = append(names, c.name)
	}
	return names
}

func (s *SpannerTable) table() string { return or(s.Table, "LAST_SEEN_COMMIT_TIMESTAMPS") }

// Check creates the table if it is missing. It returns an error if the table's columns or key differ from what is
// needed.
func (s *SpannerTable) Check(ctx context.Context) error {
	d, err := describe(ctx, s.Client, named(s.Client.DatabaseName(), s.table()))
	if status.Code(err) == codes.NotFound && !s.NoCreate && strings.Contains(err.Error(), "Table not found") {
		return s.create(ctx)
	}
	if err != nil {
		return err
	}
	want := lastSeenNames()
	for _, c := range lastSeenColumns {
		typ, _, _ := strings.Cut(strings.TrimSuffix(c.typ, " NOT NULL"), "(")
		have, ok := d.types[c.name]
		if !ok {
			return s.wrong("it has no column %s", c.name)
		}
		if base, _, _ := strings.Cut(have, "("); base != typ {
			return s.wrong("its column %s is of type %s, not %s", c.name, have, typ)
		}
	}
	if key := d.keyNames(); !slices.Equal(key, want[:len(want)-1]) {
		return s.wrong("its primary key is (%s), not (%s)", strings.Join(key, ", "), strings.Join(want[:len(want)-1], ", "))
	}
	return nil
}

func (s *SpannerTable) wrong(format string, args ...any) error {
	return status.Errorf(codes.FailedPrecondition, "Table %s cannot hold commit timestamps: %s", s.table(), fmt.Sprintf(format, args...))
}

// create creates the table. It succeeds, too, if another watcher creates the table at the same time.
func (s *SpannerTable) create(ctx context.Context) error {
	admin, err := database.NewDatabaseAdminClient(ctx, s.ClientOptions...)
	if err != nil {
		return err
	}
	defer admin.Close()
	var b strings.Builder
	for _, c := range lastSeenColumns {
		fmt.Fprintf(&b, "  %s %s,\n", c.name, c.typ)
	}
	names := lastSeenNames()
	op, err := admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{
		Database:   s.Client.DatabaseName(),
		Statements: []string{fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s) PRIMARY KEY (%s)", named("", s.table()).quoted(), b.String(), strings.Join(names[:len(names)-1], ", "))},
	})
	if err != nil {
		return err
	}
	return op.Wait(ctx)
}

// Load implements Repository.
func (s *SpannerTable) Load(ctx context.Context, id FeedID) (Checkpoint, bool, error) {
	key, err := lastSeenKey(id)
	if err != nil {
		return Checkpoint{}, false, err
	}
	it := s.Client.Single().Read(ctx, s.table(), spanner.Key(key), []string{"LAST_SEEN_COMMIT_TIMESTAMP"})
	defer it.Stop()
	row, err := it.Next()
	if err == iterator.Done {
		return Checkpoint{}, false, nil
	}
	if err != nil {
		return Checkpoint{}, false, err
	}
	var c Checkpoint
	err = row.Columns(&c.Timestamp)
	return c, true, err
}

// Store implements Repository.
func (s *SpannerTable) Store(ctx context.Context, id FeedID, c Checkpoint) error {
	key, err := lastSeenKey(id)
	if err != nil {
		return err
	}
	m := spanner.InsertOrUpdate(s.table(), lastSeenNames(), append(key, c.Timestamp))
	_, err = s.Client.Apply(ctx, []*spanner.Mutation{m}, spanner.ApplyAtLeastOnce())
	return err
}

// lastSeenKey returns the key of a feed in the table. The shard is in the column of its type, and the other shard
// columns are NULL.
func lastSeenKey(id FeedID) ([]any, error) {
	var (
		b   spanner.NullBool
		by  []byte
		d   spanner.NullDate
		f   spanner.NullFloat64
		i   spanner.NullInt64
		s   spanner.NullString
		t   spanner.NullTime
		err error
	)
	text := id.Shard.Text
	switch id.Shard.Type {
	case spannerpb.TypeCode_TYPE_CODE_UNSPECIFIED:
	case spannerpb.TypeCode_BOOL:
		b.Valid = true
		b.Bool, err = strconv.ParseBool(text)
	case spannerpb.TypeCode_BYTES:
		by, err = base64.StdEncoding.DecodeString(text)
	case spannerpb.TypeCode_DATE:
		d.Valid = true
		d.Date, err = civil.ParseDate(text)
	case spannerpb.TypeCode_FLOAT64:
		f.Valid = true
		f.Float64, err = strconv.ParseFloat(text, 64)
	case spannerpb.TypeCode_INT64:
		i.Valid = true
		i.Int64, err = strconv.ParseInt(text, 10, 64)
	case spannerpb.TypeCode_STRING:
		s = spanner.NullString{StringVal: text, Valid: true}
	case spannerpb.TypeCode_TIMESTAMP:
		t.Valid = true
		t.Time, err = time.Parse(time.RFC3339Nano, text)
	default:
		err = fmt.Errorf("no column for a shard of type %v", id.Shard.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("the shard of feed %s: %w", id, err)
	}
	return []any{id.Database, id.Catalog, id.Schema, id.Name, b, by, d, f, i, s, t}, nil
}
