package server

import (
	"bytes"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// FuzzPartitionToken makes a token with random bounds. It checks that parsing the token returns these bounds, and that
// the token is refused for another request, transaction or key. It also parses random bytes with a valid checksum,
// which must not cause a panic.
func FuzzPartitionToken(f *testing.F) {
	key := token.NewKey([token.SecretSize]byte{1})
	f.Add([]byte("start"), []byte("end"), []byte{})
	f.Add([]byte{}, []byte{}, []byte{partitionVersion, 0, 0, 0, 0, 0, 0, 0, 7, 200})
	f.Add([]byte{}, []byte{}, []byte{partitionVersion, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, start, end, body []byte) {
		p := partition{span: table.Span{Start: start, End: end}}
		sealed := p.token(key, 7, []byte("transaction"))
		got, err := parsePartition(key, sealed, 7, []byte("transaction"))
		if err != nil || !bytes.Equal(got.span.Start, start) || !bytes.Equal(got.span.End, end) {
			t.Fatalf("round trip: %v, %v", got, err)
		}
		for _, foreign := range []error{
			second(parsePartition(key, sealed, 8, []byte("transaction"))),
			second(parsePartition(key, sealed, 7, []byte("another"))),
			second(parsePartition(token.NewKey([token.SecretSize]byte{2}), sealed, 7, []byte("transaction"))),
		} {
			if usererror.CodeOf(foreign) != codes.InvalidArgument {
				t.Fatalf("foreign token: %v", foreign)
			}
		}
		if _, err := parsePartition(key, key.Seal(bytes.Clone(body), 0), 7, nil); err != nil && usererror.CodeOf(err) != codes.InvalidArgument {
			t.Fatal(err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// fuzzCatalog returns a small schema.
func fuzzCatalog(f *testing.F) *schema.Catalog {
	c := schema.NewCatalog()
	for _, ddl := range []string{
		"CREATE TABLE T (A INT64 NOT NULL, B STRING(20), C BYTES(MAX), D TIMESTAMP, E ARRAY<FLOAT64>, F NUMERIC, G DATE, H JSON, I BOOL) PRIMARY KEY (A, B DESC, D)",
		"CREATE INDEX I ON T(G, F DESC) STORING (C)",
	} {
		next, _, err := c.Apply(ddl, nil)
		if err != nil {
			f.Fatal(err)
		}
		c = next
	}
	return c
}

// userError checks that err is nil, or has a code that blames the request.
func userError(t *testing.T, err error) {
	switch usererror.CodeOf(err) {
	case codes.OK, codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound, codes.Unimplemented, codes.OutOfRange:
	default:
		t.Fatalf("%v: %v", usererror.CodeOf(err), err)
	}
}

// FuzzKeySet checks that decoding a random key set, of a table or of its index, causes no panic, and no error other
// than a user error.
func FuzzKeySet(f *testing.F) {
	c := fuzzCatalog(f)
	for _, ks := range []*spannerpb.KeySet{
		{All: true},
		{Keys: []*structpb.ListValue{list("1", "x", "2020-01-01T00:00:00Z"), list(nil, nil, nil), list("1")}},
		{Ranges: []*spannerpb.KeyRange{{
			StartKeyType: &spannerpb.KeyRange_StartClosed{StartClosed: list("1")}, EndKeyType: &spannerpb.KeyRange_EndOpen{EndOpen: list("9", "z")},
		}}},
		{Ranges: []*spannerpb.KeyRange{{StartKeyType: &spannerpb.KeyRange_StartOpen{}}, nil}},
	} {
		b, err := proto.Marshal(ks)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	layouts := []*table.Layout{table.TableLayout(c.Table("T")), table.IndexLayout(c.Index("I"))}
	key := token.NewKey([token.SecretSize]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := new(spannerpb.KeySet)
		if proto.Unmarshal(data, p) != nil {
			t.Skip()
		}
		key.Read("s", "T", "", nil, p)
		for _, l := range layouts {
			ks, err := keySet(l, p)
			userError(t, err)
			if err == nil {
				_, err = l.Spans(ks)
				userError(t, err)
			}
		}
	})
}

// FuzzMutation checks that converting a random mutation causes no panic, and no error other than a user error.
func FuzzMutation(f *testing.F) {
	c := fuzzCatalog(f)
	row := list("1", "x", "aGk=", value.CommitTimestampText, []any{1.5, "NaN"}, "1.5", "2020-02-29", `{"a":[1]}`, true)
	columns := []string{"A", "B", "C", "D", "E", "F", "G", "H", "I"}
	for _, m := range []*spannerpb.Mutation{
		{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{Table: "T", Columns: columns, Values: []*structpb.ListValue{row}}}},
		{Operation: &spannerpb.Mutation_Update{Update: &spannerpb.Mutation_Write{Table: "T", Columns: []string{"A", "A"}, Values: []*structpb.ListValue{list("1")}}}},
		{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "T", KeySet: allKeys()}}},
		{Operation: &spannerpb.Mutation_Replace{}},
		{Operation: &spannerpb.Mutation_Send_{}},
		{},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := new(spannerpb.Mutation)
		if proto.Unmarshal(data, p) != nil {
			t.Skip()
		}
		_, err := mutations(c, []*spannerpb.Mutation{p, nil})
		userError(t, err)
		if err == nil {
			t.Fatal("a nil mutation is accepted")
		}
		_, err = mutations(c, []*spannerpb.Mutation{p})
		userError(t, err)
	})
}
