package rpc

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// commitRequests returns requests with many mutations of all kinds.
func commitRequests() (list []*spannerpb.CommitRequest) {
	rows := func(n int) (rows []*structpb.ListValue) {
		for i := range n {
			rows = append(rows, &structpb.ListValue{Values: []*structpb.Value{
				structpb.NewStringValue(fmt.Sprint(i)), structpb.NewStringValue(strings.Repeat("é", i%200)), structpb.NewNumberValue(float64(i) / 3), structpb.NewBoolValue(i%2 == 0), structpb.NewNullValue(),
				structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("x"), structpb.NewNullValue()}}),
			}})
		}
		return rows
	}
	write := func(n int) *spannerpb.Mutation_Write {
		return &spannerpb.Mutation_Write{Table: "Singers", Columns: []string{"A", "B", "C", "D", "E", "F"}, Values: rows(n)}
	}
	deletion := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "T", KeySet: &spannerpb.KeySet{All: true}}}}
	of := func(m ...*spannerpb.Mutation) {
		list = append(list, &spannerpb.CommitRequest{
			Session: "s", Mutations: m, ReturnCommitStats: true, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: []byte(strings.Repeat("id", smallRequest))},
		})
	}
	of(&spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: write(500)}})
	of(&spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: write(1)}}, deletion, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Update{Update: write(3)}},
		&spannerpb.Mutation{Operation: &spannerpb.Mutation_Replace{Replace: write(0)}}, &spannerpb.Mutation{})
	of()
	odd := write(2)
	odd.Values[1].Values[0] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewBoolValue(true)}})
	odd.Values = append(odd.Values, &structpb.ListValue{})
	of(&spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: odd}})
	return list
}

// TestUnmarshalCommit: unmarshal decodes commit requests as package proto does, and returns an error for the same
// malformed ones.
func TestUnmarshalCommit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i, c := range commitRequests() {
		data, err := proto.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		got := &spannerpb.CommitRequest{Session: "old", Mutations: []*spannerpb.Mutation{{}}}
		if err := unmarshal(data, got); err != nil || !proto.Equal(got, c) {
			t.Errorf("request %d: %v, %.300v", i, err, got)
		}
		for range 300 {
			bad := append([]byte(nil), data...)
			for range 1 + rng.IntN(3) {
				bad[rng.IntN(len(bad))] = byte(rng.IntN(256))
			}
			if rng.IntN(4) == 0 {
				bad = bad[:smallRequest+1+rng.IntN(len(bad)-smallRequest)]
			}
			got, want := new(spannerpb.CommitRequest), new(spannerpb.CommitRequest)
			gotErr, wantErr := unmarshal(bad, got), proto.Unmarshal(bad, want)
			if (gotErr == nil) != (wantErr == nil) || gotErr == nil && !proto.Equal(got, want) {
				t.Fatalf("request %d: %v, want %v, of %x", i, gotErr, wantErr, bad)
			}
		}
	}
}

// BenchmarkUnmarshalCommit compares unmarshal with proto.Unmarshal. It reports nanoseconds per row of 6 columns.
func BenchmarkUnmarshalCommit(b *testing.B) {
	data, err := proto.Marshal(commitRequests()[0])
	if err != nil {
		b.Fatal(err)
	}
	for name, way := range map[string]func([]byte, proto.Message) error{"proto": proto.Unmarshal, "unmarshal": unmarshal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := way(data, new(spannerpb.CommitRequest)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*500), "ns/row")
		})
	}
}
