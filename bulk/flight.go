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

// UseFlight makes the snapshot read rows over Arrow Flight SQL. conn is a connection to the server that the snapshot's
// client uses. Flight SQL needs a fraction of the CPU time that the official client needs, because the rows come as
// columns. The command of Flight SQL is the request with which Spanner's API reads a partition, and a Crowfoot server
// accepts it. So the snapshot reads the same partitions and rows, at the same timestamp, as with the official client.
// If the server does not accept such a command, the official client reads the rows.
func (s *Snapshot) UseFlight(conn grpc.ClientConnInterface) {
	s.flightClient = flight.NewClientFromConn(conn, nil)
}

// flightRetry holds the pauses before a broken stream is opened again. The official client makes the same pauses.
var flightRetry = gax.Backoff{Initial: 250 * time.Millisecond, Max: 32 * time.Second, Multiplier: 1.3}

// flightReader reads a partition over Flight SQL.
type flightReader struct {
	segment *partition
	ctx     context.Context // the context of all streams
	cancel  context.CancelFunc
	ticket  *flight.Ticket
	stream  *flight.Reader    // nil if a stream must be opened
	batch   arrow.RecordBatch // the current batch; nil if there is none
	next    int64             // the index in batch of the first row that Next has not returned yet
	given   int64             // how many rows of the partition Next has returned
	skip    int64             // how many further rows of the stream must be skipped, since Next has returned them
	retry   gax.Backoff
}

// openFlight opens a partition over Flight SQL. It returns nil if that is not possible, and the caller then uses the
// official client.
func (p *partition) openFlight(ctx context.Context) Reader {
	header, ok := p.rows.flightHeader()
	if !ok || p.rows.snapshot.flightClient == nil {
		return nil
	}
	descriptor, err := flightCommand(p.of)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, header...))
	info, err := p.rows.snapshot.flightClient.GetFlightInfo(ctx, descriptor)
	if err != nil || len(info.Endpoint) != 1 {
		cancel()
		return nil // the official client then reads the partition, and reports the error if it persists
	}
	return &flightReader{segment: p, ctx: ctx, cancel: cancel, ticket: info.Endpoint[0].Ticket, retry: flightRetry}
}

// flightHeader returns the header that asks the server for the types in the schema of the rows. ok is false if Flight
// SQL cannot return these types.
func (r *Rows) flightHeader() (header []string, ok bool) {
	timestamps := r.options.Timestamps
	if timestamps == arrowtype.Text {
		// Flight SQL cannot return timestamps as text. If there are TIMESTAMP columns, the loop below finds that their
		// types differ.
		timestamps = arrowtype.Nanoseconds
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

// flightCommand returns the Flight SQL command for a partition. The API of spanner.Partition does not give access to
// the partition's request, so flightCommand parses the partition's binary form. It consists of a token, a boolean that
// says whether the partition is of a read, and the request.
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

// maxFlightMessage is the largest message in bytes that the client accepts. It exceeds the size of a message with one
// row of the maximum size.
const maxFlightMessage = 1 << 30

// open opens a stream, which begins at the first row of the partition.
func (r *flightReader) open() error {
	stream, err := r.segment.rows.snapshot.flightClient.DoGet(r.ctx, r.ticket, grpc.MaxCallRecvMsgSize(maxFlightMessage))
	if err != nil {
		return err
	}
	r.stream, err = flight.NewRecordReader(stream)
	r.skip = r.given
	return err
}

// Next returns the next rows of the current batch, or of a new batch. If the network or a restart of the server breaks
// the stream, Next opens the stream again and skips the rows that it has already returned. This is correct because the
// rows of a partition always come in the same order.
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

// receive receives the next batch into r.batch. r.batch stays nil if all rows of the batch were returned before the
// stream broke.
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
