package server

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/result/resulttest"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// bigRows writes rows to the table Wide. Some of their values are so large that a stream sends them in pieces. The
// values between them are small.
func bigRows(h *harness, ses string) {
	h.Helper()
	for i := range 4 {
		tags := make([]any, 40)
		for j := range tags {
			tags[j] = strings.Repeat(fmt.Sprintf("<%d-%dé>", i, j), 8000)
		}
		_, err := h.data.Commit(h.ctx, singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
			Table: "Wide", Columns: []string{"Id", "A", "Tags", "B"},
			Values: []*structpb.ListValue{list(fmt.Sprint(i), strings.Repeat("語", i*500_000), tags, "end")},
		}}}))
		h.ok(err)
	}
}

func (h *harness) readWide(ses string, token []byte) []*spannerpb.PartialResultSet {
	h.Helper()
	return h.partial(h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{
		Session: ses, Table: "Wide", Columns: []string{"Id", "A", "Tags", "B"}, KeySet: allKeys(), ResumeToken: token,
	}))
}

// TestResumeAnywhere breaks a stream after each of its messages, and continues it with the token of the last message
// before the break. The values received before the break and after it must together be those of the unbroken stream.
func TestResumeAnywhere(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	bigRows(h, ses)
	whole := h.readWide(ses, nil)
	want := resulttest.Assemble(whole)
	if len(whole) < 10 || len(want) != 4*4 || want[15].GetStringValue() != "end" || len(want[13].GetStringValue()) != 4_500_000 {
		t.Fatalf("bad result: %d messages, %d values", len(whole), len(want))
	}
	chunks := 0
	for i, p := range whole {
		if proto.Size(p) > 4<<20 {
			t.Errorf("message %d has %d bytes", i, proto.Size(p))
		}
		if (p.Metadata != nil) != (i == 0) || p.Last != (i == len(whole)-1) {
			t.Errorf("message %d: metadata or last is misplaced", i)
		}
		if p.ChunkedValue {
			chunks++
		}
	}
	if chunks == 0 {
		t.Error("nothing was cut")
	}
	// A row written later must not appear in the resumed stream.
	h.ok(h.commitWide(ses, "00"))
	for i := range whole {
		got := resulttest.Assemble(append(append([]*spannerpb.PartialResultSet(nil), whole[:i+1]...), h.readWide(ses, whole[i].ResumeToken)...))
		if !sameValues(got, want) {
			t.Fatalf("resumed after message %d of %d: the values differ", i, len(whole))
		}
	}
}

// TestResumeTwice resumes a stream after each of its messages, breaks the resumed stream after each of its first
// messages, and resumes it again. The query has so many columns that the metadata alone fills the first message of a
// stream, and this message has no values. A stream that is resumed within a value is an exception: its first message
// must contain the next piece of the value, because clients expect the piece there.
func TestResumeTwice(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.ok(h.commitWide(ses, "0"))
	_, err := h.data.Commit(h.ctx, singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
		Table: "Wide", Columns: []string{"Id", "A"}, Values: []*structpb.ListValue{list("1", strings.Repeat("語", 1_000_000))},
	}}}))
	h.ok(err)
	var columns []string
	for i := range 300 {
		columns = append(columns, fmt.Sprintf("Id AS %0120d", i))
	}
	sql := "SELECT " + strings.ReplaceAll(strings.Join(columns, ", "), "AS 0", "AS c") + ", A, A AS B FROM Wide ORDER BY Id"
	query := func(token []byte) []*spannerpb.PartialResultSet {
		return h.partial(h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: sql, ResumeToken: token}))
	}
	whole := query(nil)
	want := resulttest.Assemble(whole)
	for i := range whole {
		second := query(whole[i].ResumeToken)
		for j := range min(len(second), 3) {
			got := append(append(whole[:i+1:i+1], second[:j+1]...), query(second[j].ResumeToken)...)
			if got := resulttest.Assemble(got); !sameValues(got, want) {
				t.Errorf("resumed after message %d of %d, and after message %d: %d values, want %d; or they differ", i, len(whole), j, len(got), len(want))
			}
		}
	}
}

// TestResumeInOneMessage continues broken streams by requests whose reply is a single message.
func TestResumeInOneMessage(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	for i := range 12 {
		_, err := h.data.Commit(h.ctx, singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
			Table: "Wide", Columns: []string{"Id", "A"}, Values: []*structpb.ListValue{list(fmt.Sprintf("%02d", i), strings.Repeat("x", 100_000))},
		}}}))
		h.ok(err)
	}
	read := &spannerpb.ReadRequest{Session: ses, Table: "Wide", Columns: []string{"Id", "A"}, KeySet: allKeys()}
	query := &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT Id, A FROM Wide ORDER BY Id"}
	reads := h.partial(h.data.StreamingRead(h.ctx, read))
	queries := h.partial(h.data.ExecuteStreamingSql(h.ctx, query))
	if len(reads) < 3 || len(queries) < 3 {
		t.Fatalf("%d and %d messages", len(reads), len(queries))
	}
	h.ok(h.commitWide(ses, "99")) // a row that the resumed read, at its earlier timestamp, must not return
	want := resulttest.Assemble(reads)
	for i := range reads {
		read.ResumeToken = reads[i].ResumeToken
		rest, err := h.data.Read(h.ctx, read)
		h.ok(err)
		if got := append(resulttest.Assemble(reads[:i+1]), cells(rest)...); !sameValues(got, want) {
			t.Errorf("resumed after message %d of a read: %d values, want %d", i, len(got), len(want))
		}
	}
	for i := range queries {
		query.ResumeToken = queries[i].ResumeToken
		rest, err := h.data.ExecuteSql(h.ctx, query)
		h.ok(err)
		if got := append(resulttest.Assemble(queries[:i+1]), cells(rest)...); !sameValues(got, want) {
			t.Errorf("resumed after message %d of a query: %d values, want %d", i, len(got), len(want))
		}
	}
	query.Sql += " "
	_, err := h.data.ExecuteSql(h.ctx, query)
	h.fails(err, codes.InvalidArgument)
}

// TestResumeWithinRow: a stream that broke within a row cannot be continued by a request whose reply is a single
// message, because such a reply contains only whole rows.
func TestResumeWithinRow(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	bigRows(h, ses)
	_, err := h.data.Read(h.ctx, &spannerpb.ReadRequest{
		Session: ses, Table: "Wide", Columns: []string{"Id", "A", "Tags", "B"}, KeySet: allKeys(), ResumeToken: h.readWide(ses, nil)[3].ResumeToken,
	})
	h.fails(err, codes.InvalidArgument)
	if !strings.Contains(err.Error(), "within a row") {
		t.Error(err)
	}
}

// cells returns the values of a result, row after row.
func cells(rs *spannerpb.ResultSet) (list []*structpb.Value) {
	for _, r := range rs.Rows {
		list = append(list, r.Values...)
	}
	return list
}

func (h *harness) commitWide(ses, id string) error {
	_, err := h.data.Commit(h.ctx, singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: &spannerpb.Mutation_Write{
		Table: "Wide", Columns: []string{"Id", "A"}, Values: []*structpb.ListValue{list(id, "later")},
	}}}))
	return err
}

func sameValues(a, b []*structpb.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !proto.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func TestForeignResumeToken(t *testing.T) {
	h := newHarness(t)
	ses, other := h.session(true), h.session(true)
	h.insert(ses, list("1", "a"), list("2", "b"))
	base := &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys()}
	token := h.partial(h.data.StreamingRead(h.ctx, base))[0].ResumeToken
	change := map[string]func(*spannerpb.ReadRequest){
		"session":  func(r *spannerpb.ReadRequest) { r.Session = other },
		"columns":  func(r *spannerpb.ReadRequest) { r.Columns = []string{"Name"} },
		"keys":     func(r *spannerpb.ReadRequest) { r.KeySet = &spannerpb.KeySet{Keys: []*structpb.ListValue{list("1")}} },
		"limit":    func(r *spannerpb.ReadRequest) { r.Limit = 1 },
		"index":    func(r *spannerpb.ReadRequest) { r.Index = "SingersByName" },
		"cut off":  func(r *spannerpb.ReadRequest) { r.ResumeToken = token[:len(token)-1] },
		"tampered": func(r *spannerpb.ReadRequest) { r.ResumeToken = append([]byte{token[0] ^ 1}, token[1:]...) },
		"garbage":  func(r *spannerpb.ReadRequest) { r.ResumeToken = []byte("x") },
	}
	for name, f := range change {
		req := proto.Clone(base).(*spannerpb.ReadRequest)
		req.ResumeToken = token
		f(req)
		stream, err := h.data.StreamingRead(h.ctx, req)
		h.ok(err)
		if _, err = stream.Recv(); err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		h.fails(err, codes.InvalidArgument)
	}
	query, err := h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1", ResumeToken: token})
	h.ok(err)
	_, err = query.Recv()
	h.fails(err, codes.InvalidArgument)
}

func TestEmptyStream(t *testing.T) {
	h := newHarness(t)
	got := h.readWide(h.session(true), nil)
	if len(got) != 1 || len(got[0].Metadata.GetRowType().GetFields()) != 4 || len(got[0].Values) != 0 || !got[0].Last {
		t.Errorf("want one message with metadata, got %v", got)
	}
}

// TestUnaryLimit: a read fails if it returns more data than a reply of one message can hold.
func TestUnaryLimit(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	bigRows(h, ses)
	_, err := h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Wide", Columns: []string{"Id", "A", "Tags", "B"}, KeySet: allKeys()})
	h.fails(err, codes.FailedPrecondition)
	reply, err := h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Wide", Columns: []string{"Id", "B"}, KeySet: allKeys()})
	h.ok(err)
	if len(reply.Rows) != 4 || reply.Rows[3].Values[1].GetStringValue() != "end" {
		t.Errorf("bad rows %v", reply.Rows)
	}
}

// breaking receives the first messages of a stream, and then fails as a broken connection does. left is how many
// messages it still receives.
type breaking struct {
	h    *harness
	left int
	got  []*spannerpb.PartialResultSet
}

func (b *breaking) send(m any) error {
	if b.left == 0 {
		return usererror.Transport(codes.Unavailable, "the connection broke")
	}
	b.left--
	p := new(spannerpb.PartialResultSet)
	b.got = append(b.got, p)
	return m.(*rpc.Frame).Decode(p)
}

// TestResumeAfterInlineBegin: the first request of a transaction begins it, and its stream breaks. If the client has
// already got the id of the transaction, the transaction continues.
func TestResumeAfterInlineBegin(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	bigRows(h, ses)
	req := &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: begins(readWrite()), Sql: "SELECT * FROM Wide ORDER BY Id", Seqno: 1}
	broken := &breaking{h: h, left: 3}
	if err := h.stream("ExecuteStreamingSql", req, broken.send); err == nil {
		t.Fatal("the stream did not break")
	}
	id := broken.got[0].Metadata.Transaction.Id
	resumed := proto.Clone(req).(*spannerpb.ExecuteSqlRequest)
	resumed.Transaction, resumed.ResumeToken = byID(id), broken.got[2].ResumeToken
	rest := h.partial(h.data.ExecuteStreamingSql(h.ctx, resumed))
	if got, want := resulttest.Assemble(append(broken.got, rest...)), resulttest.Assemble(h.readWide(ses, nil)); !sameValues(got, want) {
		t.Error("the resumed stream differs")
	}
	_, err := h.data.Commit(h.ctx, commitOf(ses, id))
	h.ok(err)

	// If the stream breaks before anything was sent, the client did not get the id, so the transaction is forgotten.
	silent := &breaking{h: h}
	if err := h.stream("ExecuteStreamingSql", req, silent.send); err == nil {
		t.Fatal("the stream did not break")
	}
	h.ok(h.commitWide(ses, "0"))

	// A resume token from a read-write transaction is refused in a read-only transaction.
	foreign := proto.Clone(resumed).(*spannerpb.ExecuteSqlRequest)
	foreign.Transaction = byID(h.begin(ses, readOnly()))
	err = h.stream("ExecuteStreamingSql", foreign, (&breaking{h: h, left: 100}).send)
	if usererror.CodeOf(err) != codes.InvalidArgument {
		t.Errorf("foreign transaction: %v", err)
	}
}
