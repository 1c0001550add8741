package changestream_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/txn"
)

// world is a store with one database that has change streams, for the tests.
type world struct {
	t      testing.TB
	fs     vfs.FS
	store  *pebble.Store
	clock  func() time.Time
	oracle *txn.Oracle
	log    *changestream.Log
}

var (
	stream = &schema.ChangeStream{ID: 7, Name: "s", Retention: 24 * time.Hour}
	other  = &schema.ChangeStream{ID: 8, Name: "other", Retention: 24 * time.Hour}
)

func newWorld(t testing.TB, fs vfs.FS) *world {
	w := &world{t: t, fs: fs, clock: time.Now}
	w.open()
	w.create(stream)
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	if w.store, err = pebble.Open("data", w.fs); err != nil {
		w.t.Fatal(err)
	}
	if w.oracle, err = txn.NewOracle(w.store, w.clock); err != nil {
		w.t.Fatal(err)
	}
	if w.log, err = changestream.Open(changestream.Config{Space: 1, Store: w.store, Oracle: w.oracle, Clock: w.clock, Secret: [16]byte{1}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) close() {
	w.t.Helper()
	w.log.Close(context.Canceled)
	if err := w.oracle.Close(); err != nil {
		w.t.Error(err)
	}
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) reopen() {
	w.close()
	w.open()
}

// create replaces the world's change streams by the given ones and returns the timestamp of that change.
func (w *world) create(streams ...*schema.ChangeStream) mvcc.Timestamp {
	w.t.Helper()
	b := w.store.NewBatch()
	defer b.Close()
	at, pending, err := w.oracle.Begin(b)
	if err != nil {
		w.t.Fatal(err)
	}
	change, err := w.log.Change(b, streams, at, func(*schema.ChangeStream) [][]byte { return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	if err := change.End(b.Commit()); err != nil {
		w.t.Fatal(err)
	}
	if err := pending.Finish(nil); err != nil {
		w.t.Fatal(err)
	}
	return at
}

// commit commits changes of keys and returns the timestamp. The record of a change contains the key as its text.
func (w *world) commit(keys ...string) mvcc.Timestamp {
	w.t.Helper()
	at, err := w.tryCommit(keys...)
	if err != nil {
		w.t.Fatal(err)
	}
	return at
}

func (w *world) tryCommit(keys ...string) (at mvcc.Timestamp, err error) {
	b := w.store.NewBatch()
	defer b.Close()
	at, pending, err := w.oracle.Begin(b)
	if err != nil {
		return 0, err
	}
	var touched []*changestream.Partition
	all := w.log.At(stream.ID, at)
	for i, k := range keys {
		p := all.Of([]byte(k))
		record, err := proto.Marshal(structpb.NewStringValue(fmt.Sprintf("%s@%d", k, at)))
		if err != nil {
			return 0, err
		}
		if err := p.Append(b, at, uint32(i), record); err != nil {
			return 0, err
		}
		touched = append(touched, p)
	}
	if err := pending.Finish(b.Commit()); err != nil {
		return 0, err
	}
	for _, p := range touched {
		p.Wake()
	}
	return at, nil
}

// query returns a query that reads a partition or, if token is "", the list of partitions, from the timestamp start
// on.
func query(token string, start mvcc.Timestamp) changestream.Query {
	return changestream.Query{Stream: stream, Partition: token != "", Token: token, Start: start, End: mvcc.Latest, Heartbeat: 10 * time.Second}
}

func (w *world) read(q changestream.Query) *changestream.Reader {
	w.t.Helper()
	r, err := w.log.Read(w.t.Context(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// child is a partition that a child partitions record names.
type child struct {
	token   string
	parents []string
}

// A record is a decoded row of a reader. It is a data record, which is a text, or a heartbeat, or a list of
// partitions.
type record struct {
	data     string
	at       mvcc.Timestamp // the timestamp of the heartbeat, or the timestamp at which the partitions begin
	children []child
}

func parse(t testing.TB, data []byte) (r record) {
	t.Helper()
	v := new(structpb.Value)
	if err := proto.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
	if v.GetListValue() == nil {
		return record{data: v.GetStringValue()}
	}
	kinds := v.GetListValue().Values[0].GetListValue().Values
	if beats := kinds[1].GetListValue().Values; len(beats) > 0 {
		r.at = stamp(t, beats[0].GetListValue().Values[0])
		return r
	}
	fields := kinds[2].GetListValue().Values[0].GetListValue().Values
	r.at = stamp(t, fields[0])
	for _, v := range fields[2].GetListValue().Values {
		c := child{token: v.GetListValue().Values[0].GetStringValue()}
		for _, p := range v.GetListValue().Values[1].GetListValue().Values {
			c.parents = append(c.parents, p.GetStringValue())
		}
		r.children = append(r.children, c)
	}
	return r
}

func stamp(t testing.TB, v *structpb.Value) mvcc.Timestamp {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, v.GetStringValue())
	if err != nil {
		t.Fatal(err)
	}
	return mvcc.TimestampOf(at)
}

// all runs a query to its end and returns its records.
func (w *world) all(q changestream.Query) (records []record) {
	w.t.Helper()
	r := w.read(q)
	for {
		ok, err := r.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if !ok {
			return records
		}
		records = append(records, parse(w.t, r.Record()))
	}
}

// next returns the next record of a reader.
func next(t testing.TB, r *changestream.Reader) record {
	t.Helper()
	ok, err := r.Next()
	if err != nil || !ok {
		t.Fatalf("no record: %v, %v", ok, err)
	}
	return parse(t, r.Record())
}

// texts formats records. It formats a data record as its text without the timestamp.
func texts(records []record) string {
	var list []string
	for _, r := range records {
		text, _, _ := strings.Cut(r.data, "@")
		switch {
		case r.children != nil:
			text = fmt.Sprintf("%d children", len(r.children))
		case r.data == "":
			text = "heartbeat"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// tokens returns the tokens of the partitions that live at a timestamp, in the order of keys.
func (w *world) tokens(at mvcc.Timestamp) (tokens []string) {
	w.t.Helper()
	for _, r := range w.all(query("", at)) {
		for _, c := range r.children {
			tokens = append(tokens, c.token)
		}
	}
	return tokens
}

func (w *world) reshape(bounds ...string) {
	w.t.Helper()
	list := make([][]byte, len(bounds))
	for i, b := range bounds {
		list[i] = []byte(b)
	}
	if err := w.log.Reshape(stream.ID, func() [][]byte { return list }); err != nil {
		w.t.Fatal(err)
	}
}
