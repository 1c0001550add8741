package jsonlines

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/watch"
)

func row(columns []watch.Column, values ...*structpb.Value) watch.Row {
	return watch.Row{Columns: columns, Values: values}
}

var (
	id   = watch.Column{Name: "SingerId", Type: scalar(sppb.TypeCode_INT64)}
	name = watch.Column{Name: "Name", Type: scalar(sppb.TypeCode_STRING)}
	key  = row([]watch.Column{id}, structpb.NewStringValue("1"))
	at   = time.Date(2026, 11, 22, 10, 0, 0, 123456000, time.UTC)
)

// TestLines compares the lines of a polled row and of change stream records with the expected text.
func TestLines(t *testing.T) {
	bob, eve := structpb.NewStringValue("Bob"), structpb.NewStringValue("Eve")
	polled := &watch.Transaction{CommitTimestamp: at, Changes: []watch.Change{
		{Table: watch.TableID{Name: "Singers"}, CommitTimestamp: at, Key: key, Values: row([]watch.Column{id, name}, structpb.NewStringValue("1"), bob)},
	}}
	streamed := &watch.Transaction{CommitTimestamp: at, ID: "Nz", Tag: "app=x", System: true, Changes: []watch.Change{
		{Table: watch.TableID{Schema: "music", Name: "Singers"}, Kind: watch.Update, CommitTimestamp: at, Key: key, RecordSequence: "00000001",
			Values: row([]watch.Column{name}, eve), OldValues: row([]watch.Column{name}, bob)},
		{Table: watch.TableID{Name: "Singers"}, Kind: watch.Delete, CommitTimestamp: at, Key: key, RecordSequence: "00000002"},
	}}
	var out bytes.Buffer
	w := NewWriter(&out)
	if err := w.HandleBatch(context.Background(), []*watch.Transaction{polled, streamed}); err != nil {
		t.Fatal(err)
	}
	want := `{"commit_timestamp":"2026-11-22T10:00:00.123456Z","table_name":"Singers","mod_type":"UPSERT","keys":{"SingerId":1},"new_values":{"Name":"Bob"}}
{"commit_timestamp":"2026-11-22T10:00:00.123456Z","table_name":"music.Singers","mod_type":"UPDATE","keys":{"SingerId":1},"new_values":{"Name":"Eve"},"old_values":{"Name":"Bob"},"record_sequence":"00000001","server_transaction_id":"Nz","transaction_tag":"app=x","is_system_transaction":true}
{"commit_timestamp":"2026-11-22T10:00:00.123456Z","table_name":"Singers","mod_type":"DELETE","keys":{"SingerId":1},"new_values":{},"record_sequence":"00000002","server_transaction_id":"Nz","transaction_tag":"app=x","is_system_transaction":true}
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestBrokenWriter checks that Handle returns the error of its writer, and that a value that cannot be encoded gives
// an error that names its column.
func TestBrokenWriter(t *testing.T) {
	tx := &watch.Transaction{CommitTimestamp: at, Changes: []watch.Change{{CommitTimestamp: at, Key: key}}}
	if err := NewWriter(brokenWriter{}).Handle(context.Background(), tx); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v, want the writer's error", err)
	}
	tx.Changes[0].Key = row([]watch.Column{id}, structpb.NewStringValue("one"))
	if err := NewWriter(io.Discard).Handle(context.Background(), tx); err == nil || !bytes.Contains([]byte(err.Error()), []byte("column SingerId")) {
		t.Errorf("%v, want an error that names the column", err)
	}
}
