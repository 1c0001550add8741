package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/result/resulttest"
)

func TestPartitions(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	var rows []*structpb.ListValue
	for i := range 5000 {
		rows = append(rows, list(fmt.Sprint(i), fmt.Sprintf("name %d", i)))
	}
	h.insert(ses, rows...)
	id := h.begin(ses, readOnly())
	h.insert(ses, list("5001", "too late"))

	read := &spannerpb.PartitionReadRequest{Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys()}
	reads, err := h.data.PartitionRead(h.ctx, read)
	h.ok(err)
	counts := map[string]int{}
	for _, p := range reads.Partitions {
		got := h.partial(h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{
			Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(),
			PartitionToken: p.PartitionToken, DataBoostEnabled: true,
		}))
		for _, v := range resulttest.Assemble(got) {
			counts[v.GetStringValue()]++
		}
	}
	wantOnce(t, "PartitionRead", counts, len(rows))
	if len(reads.Partitions) != 5 {
		t.Errorf("want a partition for each thousand rows, got %d", len(reads.Partitions))
	}

	sql := "SELECT SingerId FROM Singers WHERE SingerId >= @from"
	queries, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: byID(id), Sql: sql, Params: structOf("from", "3000")})
	h.ok(err)
	clear(counts)
	for _, p := range queries.Partitions {
		got := resulttest.Assemble(h.partial(h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{
			Session: ses, Transaction: byID(id), Sql: sql, Params: structOf("from", "3000"), PartitionToken: p.PartitionToken, DataBoostEnabled: true,
		})))
		for _, v := range got {
			counts[v.GetStringValue()]++
		}
		if len(got) < 700 || len(got) > 1300 {
			t.Errorf("PartitionQuery: one of %d partitions of 2000 rows has %d", len(queries.Partitions), len(got))
		}
	}
	wantOnce(t, "PartitionQuery", counts, 2000)

	token := reads.Partitions[0].PartitionToken
	for name, req := range map[string]*spannerpb.ReadRequest{
		"columns":     {Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"Name"}, KeySet: allKeys(), PartitionToken: token},
		"transaction": {Session: ses, Transaction: byID(h.begin(ses, readOnly())), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), PartitionToken: token},
		"limit":       {Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), PartitionToken: token, Limit: 1},
		"garbage":     {Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), PartitionToken: token[1:]},
		"data boost":  {Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), DataBoostEnabled: true},
	} {
		if _, err := h.data.Read(h.ctx, req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{"SELECT SingerId FROM Singers ORDER BY Data", "SELECT COUNT(*) FROM Singers", "DELETE FROM Singers WHERE true"} {
		_, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: byID(id), Sql: bad})
		h.fails(err, codes.InvalidArgument)
	}
	_, err = h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Sql: sql, Params: structOf("from", "1")})
	h.fails(err, codes.InvalidArgument)
}

func wantOnce(t *testing.T, what string, counts map[string]int, rows int) {
	t.Helper()
	if len(counts) != rows {
		t.Errorf("%s: want %d rows, got %d", what, rows, len(counts))
	}
	for key, n := range counts {
		if n != 1 {
			t.Errorf("%s: row %s is in %d partitions", what, key, n)
		}
	}
}

// partitionedReads are reads and queries. The partitions of each must together return the same rows as the undivided
// request.
var partitionedReads = []struct {
	name string
	read *spannerpb.ReadRequest
	sql  string
}{
	{name: "table", read: &spannerpb.ReadRequest{Table: "Singers", Columns: []string{"SingerId", "Name"}, KeySet: allKeys()}},
	{name: "index", read: &spannerpb.ReadRequest{Table: "Singers", Index: "SingersByName", Columns: []string{"SingerId", "Name"}, KeySet: allKeys()}},
	{name: "ranges", read: &spannerpb.ReadRequest{Table: "Singers", Columns: []string{"SingerId"}, KeySet: &spannerpb.KeySet{
		Keys: []*structpb.ListValue{list("7"), list("4000")}, Ranges: []*spannerpb.KeyRange{closedRange("100", "2500"), closedRange("3500", "5000")},
	}}},
	{name: "query", sql: "SELECT SingerId, Name FROM Singers"},
	{name: "query of a range", sql: "SELECT SingerId, Name FROM Singers WHERE SingerId > 1000 AND SingerId <= 4500"},
	{name: "query of an index", sql: "SELECT SingerId, Data FROM Singers@{FORCE_INDEX=SingersByName} WHERE Name > 'a'"},
}

func closedRange(from, to string) *spannerpb.KeyRange {
	return &spannerpb.KeyRange{StartKeyType: &spannerpb.KeyRange_StartClosed{StartClosed: list(from)}, EndKeyType: &spannerpb.KeyRange_EndClosed{EndClosed: list(to)}}
}

// TestPartitionsUnderWrites reads the partitions of a read or a query concurrently, while rows are inserted, changed
// and deleted. Together the partitions must return each row once, and the same rows as the undivided request at the
// same timestamp.
func TestPartitionsUnderWrites(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	row := func(i, round int) *structpb.ListValue {
		return list(fmt.Sprint(i), fmt.Sprintf("name %d %d", (i*7919)%6000, round))
	}
	var rows []*structpb.ListValue
	for i := range 6000 {
		rows = append(rows, row(i, 0))
	}
	h.insert(ses, rows...)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		random := rand.New(rand.NewPCG(1, 2))
		for round := 1; ; round++ {
			select {
			case <-stop:
				return
			default:
			}
			write := &spannerpb.Mutation_Write{Table: "Singers", Columns: []string{"SingerId", "Name"}}
			gone := &spannerpb.KeySet{}
			for range 20 {
				if i := random.IntN(9000); i%3 > 0 {
					write.Values = append(write.Values, row(i, round))
				} else {
					gone.Keys = append(gone.Keys, list(fmt.Sprint(i)))
				}
			}
			h.stream("Commit", singleUse(ses,
				&spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: write}},
				&spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "Singers", KeySet: gone}}}), nil)
		}
	}()
	for range 2 {
		for _, c := range partitionedReads {
			id := byID(h.begin(ses, readOnly()))
			var tokens []*spannerpb.Partition
			if c.sql == "" {
				reply, err := h.data.PartitionRead(h.ctx, &spannerpb.PartitionReadRequest{
					Session: ses, Transaction: id, Table: c.read.Table, Index: c.read.Index, Columns: c.read.Columns, KeySet: c.read.KeySet,
				})
				h.ok(err)
				tokens = reply.Partitions
			} else {
				reply, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: id, Sql: c.sql})
				h.ok(err)
				tokens = reply.Partitions
			}
			fetch := func(token []byte) []string {
				if c.sql != "" {
					return rowTexts(h.partial(h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: id, Sql: c.sql, PartitionToken: token})))
				}
				r := proto.Clone(c.read).(*spannerpb.ReadRequest)
				r.Session, r.Transaction, r.PartitionToken = ses, id, token
				return rowTexts(h.partial(h.data.StreamingRead(h.ctx, r)))
			}
			parts := make([][]string, len(tokens))
			var all sync.WaitGroup
			for i := range tokens {
				all.Go(func() { parts[i] = fetch(tokens[i].PartitionToken) })
			}
			all.Wait()
			got, want := slices.Sorted(slices.Values(slices.Concat(parts...))), slices.Sorted(slices.Values(fetch(nil)))
			if len(tokens) < 2 || !slices.Equal(got, want) {
				t.Errorf("%s: %d partitions have %d rows, the whole has %d, or they differ", c.name, len(tokens), len(got), len(want))
			}
		}
	}
	close(stop)
	<-stopped
}

// rowTexts formats each row of a stream as text.
func rowTexts(stream []*spannerpb.PartialResultSet) (texts []string) {
	for row := range slices.Chunk(resulttest.Assemble(stream), len(stream[0].Metadata.RowType.Fields)) {
		texts = append(texts, fmt.Sprint(row))
	}
	return texts
}
