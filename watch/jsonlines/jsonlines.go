// Package jsonlines writes changes as JSON lines, one object for each change, with the field names of Spanner's change
// streams:
//
//	{"commit_timestamp":"2026-11-22T10:00:00.123456Z","table_name":"Singers","mod_type":"UPSERT","keys":{"SingerId":1},"new_values":{"Name":"Bob"}}
//
// For a polled row, mod_type is UPSERT and new_values has all columns except those of the key. For a change from a
// change stream, mod_type is INSERT, UPDATE or DELETE, and new_values and old_values have the values that the stream
// captures. Such a change also has record_sequence, server_transaction_id, transaction_tag and is_system_transaction
// if these are not empty. The name of a table in a named schema is, for example, "music.Singers".
//
// Imports of this module: watch.
package jsonlines

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/watch"
)

// Writer is a handler that writes each change as a line. A change counts as handled when the underlying io.Writer has
// accepted its line.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
	b   []byte
}

// NewWriter returns a handler that writes to out. It calls Write once for all transactions that are ready. An error of
// Write is fatal, since out may have accepted a part of the lines.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Handle writes one transaction.
func (w *Writer) Handle(ctx context.Context, tx *watch.Transaction) error {
	return w.HandleBatch(ctx, []*watch.Transaction{tx})
}

// HandleBatch writes transactions, in their order.
func (w *Writer) HandleBatch(_ context.Context, list []*watch.Transaction) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.b, err = AppendLines(w.b[:0], list); err != nil {
		return err
	}
	if _, err := w.out.Write(w.b); err != nil {
		return watch.Fatal(err)
	}
	return nil
}

// AppendLines appends the lines of all changes to b.
func AppendLines(b []byte, list []*watch.Transaction) (_ []byte, err error) {
	for _, tx := range list {
		for i := range tx.Changes {
			if b, err = AppendChange(b, tx, &tx.Changes[i]); err != nil {
				return nil, err
			}
			b = append(b, '\n')
		}
	}
	return b, nil
}

// AppendChange appends the JSON object of a change to b, without a line end.
func AppendChange(b []byte, tx *watch.Transaction, c *watch.Change) (_ []byte, err error) {
	b = append(b, `{"commit_timestamp":"`...)
	b = c.CommitTimestamp.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","table_name":`...)
	b = AppendString(b, c.Table.String())
	b = append(b, `,"mod_type":"`+c.Kind.String()+`","keys":`...)
	if b, err = AppendRow(b, c.Key); err != nil {
		return nil, err
	}
	b = append(b, `,"new_values":`...)
	if b, err = appendColumns(b, c.Values, func(name string) bool { return c.Key.Index(name) < 0 }); err != nil {
		return nil, err
	}
	if len(c.OldValues.Columns) > 0 {
		b = append(b, `,"old_values":`...)
		if b, err = AppendRow(b, c.OldValues); err != nil {
			return nil, err
		}
	}
	for _, text := range []struct{ name, value string }{
		{"record_sequence", c.RecordSequence}, {"server_transaction_id", tx.ID}, {"transaction_tag", tx.Tag},
	} {
		if text.value != "" {
			b = append(b, `,"`+text.name+`":`...)
			b = AppendString(b, text.value)
		}
	}
	if tx.System {
		b = append(b, `,"is_system_transaction":true`...)
	}
	return append(b, '}'), nil
}

// AppendRow appends a JSON object with the columns of a row to b.
func AppendRow(b []byte, r watch.Row) ([]byte, error) {
	return appendColumns(b, r, func(string) bool { return true })
}

func appendColumns(b []byte, r watch.Row, wanted func(name string) bool) (_ []byte, err error) {
	b = append(b, '{')
	first := true
	for i := range r.Columns {
		c := &r.Columns[i]
		if !wanted(c.Name) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = AppendString(b, c.Name)
		b = append(b, ':')
		if b, err = AppendValue(b, c.Type, r.Values[i]); err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
	}
	return append(b, '}'), nil
}
