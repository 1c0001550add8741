package bulk

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// UseFlight has rows of the snapshot read over Arrow Flight SQL, by a connection to the server that the snapshot's client talks to. They come as columns, in a
// fraction of the CPU time. A Crowfoot server takes a partition of Spanner's API as a command of Flight SQL, so rows, timestamp and partitions are the same. If the
// server does not, rows are read by the client.
func (s *Snapshot) UseFlight(conn grpc.ClientConnInterface) {
	s.flight = flight.NewClientFromConn(conn, nil)
}

// flightRetry are the pauses before a broken stream is opened again, as the official client has them.
var flightRetry = gax.Backoff{Initial: 250 * time.Millisecond, Max: 32 * time.Second, Multiplier: 1.3}

// flightReader reads a partition over Flight SQL.
type flightReader struct {
	segment *partition
	ctx     context.Context // of all streams
	cancel  context.CancelFunc
	ticket  *flight.Ticket
	stream  *flight.Reader    // nil if it must be opened
	batch   arrow.RecordBatch // of which the rows from next on are still to give; nil for none
	next    int64
	given   int64 // rows
	skip    int64 // rows of the stream that were given before it broke
	retry   gax.Backoff
}

// openFlight opens a partition; nil if it cannot be read in this way.
func (p *partition) openFlight(ctx context.Context) Reader {
	header, ok := p.rows.flightHeader()
	if !ok || p.rows.snapshot.flight == nil {
		return nil
	}
	descriptor, err := flightCommand(p.of)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, header...))
	info, err := p.rows.snapshot.flight.GetFlightInfo(ctx, descriptor)
	if err != nil || len(info.Endpoint) != 1 {
		cancel()
		return nil // the client's way says what is wrong, if anything is
	}
	return &flightReader{segment: p, ctx: ctx, cancel: cancel, ticket: info.Endpoint[0].Ticket, retry: flightRetry}
}

// flightHeader is the header that asks for the types of the rows' schema; ok is false if they do not come in this way.
func (r *Rows) flightHeader() (header []string, ok bool) {
	timestamps := r.options.Timestamps
	if timestamps == arrowtype.Text {
		timestamps = arrowtype.Nanoseconds // where the types have none, these make no difference
	}
	for i, f := range r.schema.Fields() {
		own, err := arrowtype.Field(f.Name, r.types[i], "", true, timestamps)
		if err != nil || !arrow.TypeEqual(own.Type, f.Type) {
			return nil, false
		}
	}
	if timestamps == arrowtype.Microseconds {
		return []string{"timestamp-unit", "us"}, true
	}
	return nil, true
}

// flightCommand is the command for a partition. A Partition shows its request only in the form in which it goes to other processes: the token, whether it is of a read,
// and the request.
func flightCommand(p *spanner.Partition) (*flight.FlightDescriptor, error) {
	data, err := p.MarshalBinary()
	if err != nil {
		return nil, err
	}
	var token, request []byte
	var isRead bool
	from := gob.NewDecoder(bytes.NewReader(data))
	if err := errors.Join(from.Decode(&token), from.Decode(&isRead), from.Decode(&request)); err != nil {
		return nil, err
	}
	var of proto.Message
	if isRead {
		read := &spannerpb.ReadRequest{}
		err = proto.Unmarshal(request, read)
		read.PartitionToken, of = token, read
	} else {
		query := &spannerpb.ExecuteSqlRequest{}
		err = proto.Unmarshal(request, query)
		query.PartitionToken, of = token, query
	}
	if err != nil {
		return nil, err
	}
	command, err := anypb.New(of)
	if err != nil {
		return nil, err
	}
	packed, err := proto.Marshal(command)
	return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: packed}, err
}

// maxFlightMessage is above the size of a message that has one row of the most bytes.
const maxFlightMessage = 1 << 30

// open begins a stream at the first row.
func (r *flightReader) open() error {
	stream, err := r.segment.rows.snapshot.flight.DoGet(r.ctx, r.ticket, grpc.MaxCallRecvMsgSize(maxFlightMessage))
	if err != nil {
		return err
	}
	r.stream, err = flight.NewRecordReader(stream)
	r.skip = r.given
	return err
}

// Next gives the next rows of the batch that came last, or of another one. A stream that the network or a restart of the server breaks is opened again: the rows of a
// partition come in one order.
func (r *flightReader) Next() (arrow.RecordBatch, error) {
	for r.batch == nil {
		err := r.receive()
		if err == io.EOF {
			return nil, err
		}
		if status.Code(err) == codes.Unavailable {
			r.closeStream()
			err = gax.Sleep(r.ctx, r.retry.Pause())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.segment, err)
		}
	}
	end := min(r.next+BatchRows, r.batch.NumRows())
	part := r.batch.NewSlice(r.next, end)
	defer part.Release()
	r.given += end - r.next
	if r.next = end; end == r.batch.NumRows() {
		r.batch = nil
	}
	return array.NewRecordBatch(r.segment.rows.schema, part.Columns(), part.NumRows()), nil
}

// receive receives a batch. There is none in r.batch if it was given before.
func (r *flightReader) receive() error {
	if r.stream == nil {
		if err := r.open(); err != nil {
			return err
		}
	}
	if !r.stream.Next() {
		if err := r.stream.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	batch := r.stream.RecordBatch()
	if n := batch.NumRows(); n <= r.skip {
		r.skip -= n
		return nil
	}
	r.batch, r.next, r.skip, r.retry = batch, r.skip, 0, flightRetry
	return nil
}

func (r *flightReader) Places() func(int) Place {
	return func(int) Place { return Place{File: r.segment.name} }
}

func (r *flightReader) Positions() func(int) int64 { return func(int) int64 { return 0 } }

func (r *flightReader) Progress() int64 { return 0 }

func (r *flightReader) closeStream() {
	if r.stream != nil {
		r.stream.Release()
	}
	r.stream = nil
}

func (r *flightReader) Close() error {
	r.closeStream()
	r.cancel()
	return nil
}
