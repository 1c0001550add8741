package flight

import (
	"bytes"
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// A batch is sent when its rows are large enough, measured by the bytes they take in storage. The first batch needs
// firstBatch bytes, and each next one twice as many as the batch before, but at most fullBatch. So a stream whose
// client does not read takes little memory. Rows below 3 MiB make messages below the 4 MiB that gRPC clients accept by
// default; a longer row is a batch of its own.
const (
	firstBatch = 32 << 10
	fullBatch  = 1 << 20
)

// columnsOf returns the columns of a result.
func columnsOf(list []plan.Column) []columnar.Column {
	columns := make([]columnar.Column, len(list))
	for i, c := range list {
		columns[i] = columnar.Column{Name: c.Name, Type: c.Type}
	}
	return columns
}

// stream sends a result as Arrow record batches.
func stream(ctx context.Context, c *rpc.Call, r *result.Result, o columnar.Options) error {
	if rows, ok := r.Rows.(*exec.ArrayRows); ok {
		return streamArrays(ctx, c, r, rows, o)
	}
	batch := columnar.NewBatch(columnsOf(r.Columns), o)
	w := newWriter(ctx, c, batch.Schema)
	w.rows = r.Rows
	charged := int64(0)
	for size := firstBatch; r.Rows != nil; size = min(2*size, fullBatch) {
		rows, err := fill(batch, r.Rows, size)
		if err != nil {
			return arrowError(err)
		}
		if rows == 0 {
			break
		}
		if more := batch.Size() - charged; more > 0 {
			if err := c.Memory.Grow(ctx, more); err != nil {
				return err
			}
			charged += more
		}
		r.Sent += int64(rows)
		if err := w.Write(batch.Record(rows)); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err // CancelFlightInfo has ended ctx but not the call, so sending does not fail
		}
		batch.Reset()
	}
	return w.finish()
}

// fill adds rows to a batch until they have about size bytes.
func fill(b *columnar.Batch, from result.Rows, size int) (rows int, err error) {
	for before := from.DataSize(); ; {
		left := size - int(from.DataSize()-before)
		n, err := from.Fill(b.Columns, left)
		if rows += n; n == 0 || err != nil {
			return rows, err
		}
		if from.DataSize()-before >= int64(size) || rows >= maxRows {
			return rows, nil
		}
	}
}

// maxRows is the number of rows at which a batch is full even if it has few bytes. A batch can have somewhat more rows,
// because Fill adds several at once.
const maxRows = 64 << 10

// arrowError returns the error that the client gets if err occurred while rows were converted to Arrow columns.
func arrowError(err error) error {
	if r := (*columnar.RangeError)(nil); errors.As(err, &r) {
		instead := "Select a part of it, or convert it to STRING."
		if r.Type == "TIMESTAMP" {
			instead = "Ask for microseconds (the header " + unitHeader + ": us; of crowfoot export, --timestamps us), or convert it to STRING."
		}
		return usererror.ArrowOutOfRange(r.Column, r.Type, r.Value, r.Arrow, instead)
	}
	return err
}

// A writer sends Arrow messages as FlightData. Each message is encoded once, directly into the frame that is sent.
type writer struct {
	*ipc.Writer
	schema *arrow.Schema
	ctx    context.Context
	call   *rpc.Call
	rows   result.Rows // the rows that are sent; nil for results that no query returns
	rest   result.Rest
	sent   bool  // the first message, which never waits, has been sent
	failed error // error of the last message; nil if it was sent
}

func newWriter(ctx context.Context, c *rpc.Call, schema *arrow.Schema) *writer {
	w := &writer{schema: schema, ctx: ctx, call: c}
	w.Writer = ipc.NewWriterWithPayloadWriter(payloads{w}, ipc.WithSchema(schema))
	return w
}

// Write sends a batch.
func (w *writer) Write(r arrow.RecordBatch) error {
	err := w.Writer.Write(r)
	if w.failed != nil {
		return w.failed // the original error, without the Arrow library's words around it
	}
	return err
}

// finish ends the stream. If there was no batch, it first sends the schema.
func (w *writer) finish() error {
	err := w.Close()
	if w.failed != nil {
		return w.failed
	}
	return err
}

// payloads is the ipc.PayloadWriter of a writer: it gets each encoded Arrow message.
type payloads struct{ *writer }

func (payloads) Start() error { return nil }
func (payloads) Close() error { return nil }

// Tags of the fields of FlightData.
const (
	tagDataHeader = 2<<3 | 2
	tagDataBody   = 1000<<3 | 2
)

func (p payloads) WritePayload(m ipc.Payload) error {
	p.failed = p.send(m)
	return p.failed
}

func (p payloads) send(m ipc.Payload) error {
	meta := m.Meta()
	defer meta.Release()
	var body counter
	if err := m.SerializeBody(&body); err != nil {
		return err
	}
	f := rpc.NewFrame()
	if err := f.Reserve(p.ctx, p.call, meta.Len()+int(body)+frameHeads); err != nil {
		f.Release()
		return err
	}
	f.Data = protowire.AppendBytes(append(f.Data, tagDataHeader), meta.Bytes())
	f.Data = protowire.AppendVarint(protowire.AppendVarint(f.Data, tagDataBody), uint64(body))
	if err := m.SerializeBody((*appender)(&f.Data)); err != nil {
		f.Release()
		return err
	}
	if p.sent && p.rows != nil {
		p.rest.Begin(p.rows)
	}
	p.sent = true
	err := p.call.Send(f)
	p.rest.End()
	return err
}

// frameHeads is how many bytes the tags and lengths of a FlightData take at most.
const frameHeads = 32

// A counter counts the bytes that are written to it.
type counter int

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

// An appender collects the bytes that are written to it.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

// schemaBytes returns a schema as Flight's messages contain it: as an Arrow stream without batches.
func schemaBytes(schema *arrow.Schema) ([]byte, error) {
	var buf bytes.Buffer
	err := ipc.NewWriter(&buf, ipc.WithSchema(schema)).Close()
	return buf.Bytes(), err
}

// store writes the rows of a result to a buffer, as an Arrow stream.
func store(to *bytes.Buffer, r *result.Result, columns []columnar.Column, o columnar.Options) error {
	batch := columnar.NewBatch(columns, o)
	w := ipc.NewWriter(to, ipc.WithSchema(batch.Schema))
	for r.Rows != nil {
		rows, err := fill(batch, r.Rows, fullBatch)
		if err != nil {
			return arrowError(err)
		}
		if rows == 0 {
			break
		}
		r.Sent += int64(rows)
		if err := w.Write(batch.Record(rows)); err != nil {
			return err
		}
		if batch.Reset(); to.Len() > maxReturned {
			return usererror.FlightReturnsTooMuch(maxReturned)
		}
	}
	return w.Close()
}

// sendStored sends the rows in data, an Arrow stream that the function store has written for a ticket.
func sendStored(ctx context.Context, c *rpc.Call, data []byte) error {
	r, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer r.Release()
	w := newWriter(ctx, c, r.Schema())
	for r.Next() {
		if err := w.Write(r.RecordBatch()); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	return w.finish()
}
