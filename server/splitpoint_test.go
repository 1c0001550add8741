package server

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// splitAt returns split points of a table, or of an index if index is not empty. Each key is a list of its parts.
func splitAt(table, index string, keys ...*structpb.ListValue) *databasepb.SplitPoints {
	p := &databasepb.SplitPoints{Table: table, Index: index}
	for _, k := range keys {
		p.Keys = append(p.Keys, &databasepb.SplitPoints_Key{KeyParts: k})
	}
	return p
}

func (h *harness) addSplits(points ...*databasepb.SplitPoints) error {
	_, err := h.databases.AddSplitPoints(h.ctx, &databasepb.AddSplitPointsRequest{Database: testDatabase, SplitPoints: points})
	return err
}

const userSplitPoints = "SELECT TABLE_NAME, INDEX_NAME, INITIATOR, SPLIT_KEY, EXPIRE_TIME FROM SPANNER_SYS.USER_SPLIT_POINTS"

// TestAddSplitPoints checks that the server accepts split points in all forms that Cloud Spanner's documentation of
// split points shows.
func TestAddSplitPoints(t *testing.T) {
	clock := newTestClock()
	now := clock.now().Truncate(time.Second)
	h := newHarnessAt(t, func() time.Time { return now })
	ses := h.session(true)
	_, err := h.databases.AddSplitPoints(h.ctx, &databasepb.AddSplitPointsRequest{
		Database:  testDatabase,
		Initiator: strings.Repeat("ä", 49) + "bc",
		SplitPoints: []*databasepb.SplitPoints{
			splitAt("Singers", "", list("200")),
			splitAt("Singers", "SingersByName", list("Mary"), list("12")),
			splitAt("", "singersbyname", list("John")),
			splitAt("Singers", "SingersByName", list(nil, "7")),
			{Table: "Singers", Keys: splitAt("", "", list("-5")).Keys, ExpireTime: timestamppb.New(now.Add(30 * 24 * time.Hour))},
		},
	})
	h.ok(err)
	tag := strings.Repeat("ä", 49) + "b"
	h.shows(ses, userSplitPoints,
		"Singers|null|"+tag+"|Singers(-5)|2030-02-01T03:04:00Z",
		"Singers|null|"+tag+"|Singers(200)|2030-01-12T03:04:00Z",
		"Singers|SingersByName|"+tag+"|Index: SingersByName on Singers, Index Key: (NULL), Primary Table Key: (7)|2030-01-12T03:04:00Z",
		"Singers|SingersByName|"+tag+"|Index: SingersByName on Singers, Index Key: (John), Primary Table Key: (<begin>)|2030-01-12T03:04:00Z",
		"Singers|SingersByName|"+tag+"|Index: SingersByName on Singers, Index Key: (Mary), Primary Table Key: (12)|2030-01-12T03:04:00Z")

	// Adding a point that exists changes its expiration time. A time in the past removes the point.
	past, soon := timestamppb.New(time.Unix(0, 0)), timestamppb.New(now.Add(time.Hour))
	h.ok(h.addSplits(
		&databasepb.SplitPoints{Table: "Singers", Keys: splitAt("", "", list("200")).Keys, ExpireTime: soon},
		&databasepb.SplitPoints{Index: "SingersByName", Keys: splitAt("", "", list("John")).Keys, ExpireTime: past},
		&databasepb.SplitPoints{Index: "SingersByName", Keys: splitAt("", "", list("Mary"), list("12")).Keys, ExpireTime: past},
		&databasepb.SplitPoints{Index: "SingersByName", Keys: splitAt("", "", list(nil, "7")).Keys, ExpireTime: past},
		&databasepb.SplitPoints{Table: "Singers", Keys: splitAt("", "", list("-5")).Keys, ExpireTime: past},
		&databasepb.SplitPoints{Table: "Singers", Keys: splitAt("", "", list("9999")).Keys, ExpireTime: past}))
	h.shows(ses, userSplitPoints, "Singers|null|CloudAddSplitPointsAPI|Singers(200)|2030-01-02T04:04:00Z")
	now = now.Add(time.Hour)
	h.shows(ses, userSplitPoints)
}

// TestAddSplitPointsRest adds split points over REST.
func TestAddSplitPointsRest(t *testing.T) {
	h := newHarness(t)
	path := "/v1/" + testDatabase + ":addSplitPoints"
	status, reply := h.http("POST", path, `{"splitPoints":[{"table":"Singers","keys":[{"keyParts":["42"]}],"expireTime":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}],"initiator":"rest"}`)
	if status != 200 || len(reply) != 0 {
		t.Fatalf("%d %v", status, reply)
	}
	h.shows(h.session(true), "SELECT INITIATOR, SPLIT_KEY FROM SPANNER_SYS.USER_SPLIT_POINTS", "rest|Singers(42)")
	if status, reply := h.http("POST", path, `{"splitPoints":[{"table":"Nobody","keys":[{"keyParts":["42"]}]}]}`); status != 404 {
		t.Errorf("%d %v", status, reply)
	}
}

// TestBadSplitPoints: a request with a bad split point fails and adds none of its points.
func TestBadSplitPoints(t *testing.T) {
	h := newHarness(t)
	many := func(n int) (list []*databasepb.SplitPoints) {
		for i := range n {
			list = append(list, splitAt("Singers", "", &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(string(rune('0' + i%10)))}}))
		}
		return list
	}
	expiring := func(at *timestamppb.Timestamp) []*databasepb.SplitPoints {
		return []*databasepb.SplitPoints{{Table: "Singers", Keys: splitAt("", "", list("1")).Keys, ExpireTime: at}}
	}
	one := func(p *databasepb.SplitPoints) []*databasepb.SplitPoints { return []*databasepb.SplitPoints{p} }
	for _, c := range []struct {
		name   string
		points []*databasepb.SplitPoints
		code   codes.Code
		text   string
	}{
		{"none", nil, codes.InvalidArgument, "split_points is required"},
		{"no table", one(splitAt("", "", list("1"))), codes.InvalidArgument, "table is required"},
		{"unknown table", one(splitAt("Nobody", "", list("1"))), codes.NotFound, "Table not found: Nobody"},
		{"system table", one(splitAt("SPANNER_SYS.TASKS", "", list("1"))), codes.NotFound, "Table not found"},
		{"unknown index", one(splitAt("", "Nobody", list("1"))), codes.NotFound, "Index not found: Nobody"},
		{"index of another table", one(splitAt("Wide", "SingersByName", list("1"))), codes.NotFound, "No index SingersByName was found for table Wide"},
		{"no keys", one(splitAt("Singers", "")), codes.InvalidArgument, "keys is required"},
		{"no key parts", one(splitAt("Singers", "", nil)), codes.InvalidArgument, "expected 1, found 0"},
		{"too many key parts", one(splitAt("Singers", "", list("1", "2"))), codes.InvalidArgument, "expected 1, found 2"},
		{"three index keys", one(splitAt("", "SingersByName", list("a"), list("1"), list("2"))), codes.InvalidArgument, "having 3 keys"},
		{"too many index key parts", one(splitAt("", "SingersByName", list("a", "1", "2"))), codes.InvalidArgument, "expected 1, found 3"},
		{"empty table key", one(splitAt("", "SingersByName", list("a"), list())), codes.InvalidArgument, "expected 1, found 0"},
		{"wrong type", one(splitAt("Singers", "", list(1.0))), codes.InvalidArgument, "column SingerId that is no INT64"},
		{"wrong text", one(splitAt("Singers", "", list("1.5"))), codes.InvalidArgument, "column SingerId that is no INT64"},
		{"wrong type of table key", one(splitAt("", "SingersByName", list("a"), list("b"))), codes.InvalidArgument, "column SingerId that is no INT64"},
		{"empty value", one(splitAt("Singers", "", &structpb.ListValue{Values: []*structpb.Value{{}}})), codes.InvalidArgument, "column SingerId"},
		{"NULL", one(splitAt("Singers", "", list(nil))), codes.InvalidArgument, "NULL in column SingerId"},
		{"twice", append(one(splitAt("Singers", "", list("1"))), splitAt("singers", "", list("1"))), codes.InvalidArgument, "duplicate split points: Singers(1)"},
		{"twice in an index", append(one(splitAt("", "SingersByName", list("a"), list("1"))), splitAt("", "SingersByName", list("a", "1"))), codes.InvalidArgument, "Index Key: (a), Primary Table Key: (1)"},
		{"too many", many(101), codes.InvalidArgument, "at most 100"},
		{"long key", one(splitAt("", "SingersByName", list(strings.Repeat("a", 9000)))), codes.InvalidArgument, "key size is 8192"},
		{"late expiry", expiring(timestamppb.New(time.Now().Add(31 * 24 * time.Hour))), codes.InvalidArgument, "at most 30 days"},
		{"no expiry", expiring(&timestamppb.Timestamp{Nanos: -1}), codes.InvalidArgument, "valid timestamp"},
		{"second is bad", append(one(splitAt("Singers", "", list("1"))), splitAt("Singers", "", list("x"))), codes.InvalidArgument, "INT64"},
	} {
		err := h.addSplits(c.points...)
		if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	_, err := h.databases.AddSplitPoints(h.ctx, &databasepb.AddSplitPointsRequest{Database: testInstance + "/databases/nobody", SplitPoints: many(1)})
	h.fails(err, codes.NotFound)
	_, err = h.databases.AddSplitPoints(h.ctx, &databasepb.AddSplitPointsRequest{SplitPoints: many(1)})
	h.fails(err, codes.InvalidArgument)
	h.shows(h.session(true), userSplitPoints)
}
