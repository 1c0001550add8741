package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// columnLoader writes rows as columns, with the bulk ingestion of Arrow Flight SQL
// (https://arrow.apache.org/docs/format/FlightSql.html). A header asks the Crowfoot server to write all rows of a
// stream in one commit, or to refuse them if they exceed the limits of a commit.
type columnLoader struct {
	client     flight.Client
	header     []string
	descriptor *flight.FlightDescriptor
	schema     *arrow.Schema // the source's columns under the names that they have in the table
}

// serverName is what a Crowfoot server answers when it is asked for FLIGHT_SQL_SERVER_NAME.
const serverName = "Crowfoot"

// newColumnLoader returns a loader for an import. It returns nil if the server is not Crowfoot, or if the server
// cannot take the type of some column of the source without a conversion.
func newColumnLoader(ctx context.Context, i *importer) (*columnLoader, error) {
	if i.Flight == nil {
		return nil, nil
	}
	fields := make([]arrow.Field, len(i.columns))
	for n, c := range i.columns {
		f := i.schema.Field(n)
		if !loads(f.Type, c.Type) {
			return nil, nil
		}
		fields[n] = arrow.Field{Name: c.Name, Type: f.Type, Nullable: true}
	}
	l := &columnLoader{client: flight.NewClientFromConn(i.Flight, nil), schema: arrow.NewSchema(fields, nil)}
	l.header = []string{"database", i.Client.DatabaseName(), "ingest-mode", string(i.Mode), "ingest-commits", "one"}
	if i.Mode == "" {
		l.header[3] = string(InsertOrUpdate)
	}
	if !l.isCrowfoot(ctx) {
		return nil, nil
	}
	command, err := anypb.New(&flightpb.CommandStatementIngest{Table: i.Table.Name, TableDefinitionOptions: &flightpb.CommandStatementIngest_TableDefinitionOptions{
		IfNotExist: flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_FAIL,
		IfExists:   flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_APPEND,
	}})
	if err != nil {
		return nil, err
	}
	packed, err := proto.Marshal(command)
	l.descriptor = &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: packed}
	return l, err
}

// isCrowfoot asks the server for its name. A server that cannot answer is not Crowfoot.
func (l *columnLoader) isCrowfoot(ctx context.Context) bool {
	ctx = metadata.AppendToOutgoingContext(ctx, l.header...)
	client := &flightsql.Client{Client: l.client, Alloc: memory.DefaultAllocator}
	info, err := client.GetSqlInfo(ctx, []flightsql.SqlInfo{flightsql.SqlInfoFlightSqlServerName})
	if err != nil || len(info.Endpoint) == 0 {
		return false
	}
	r, err := client.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return false
	}
	defer r.Release()
	if !r.Next() {
		return false
	}
	batch := r.RecordBatch()
	union, ok := batch.Column(1).(*array.DenseUnion)
	if !ok || batch.NumRows() == 0 {
		return false
	}
	name, ok := union.Field(union.ChildID(0)).(*array.String)
	return ok && name.Value(int(union.ValueOffset(0))) == serverName
}

// loads reports whether a Crowfoot server can store values of an Arrow type in a column of a Spanner type without a
// conversion by the client.
func loads(from arrow.DataType, to *spannerpb.Type) bool {
	switch t := from.(type) {
	case arrow.ExtensionType:
		return loads(t.StorageType(), to)
	case *arrow.ListType:
		return to.Code == spannerpb.TypeCode_ARRAY && loads(t.Elem(), to.ArrayElementType)
	}
	id := from.ID()
	switch to.Code {
	case spannerpb.TypeCode_STRING, spannerpb.TypeCode_JSON:
		return id == arrow.STRING || id == arrow.LARGE_STRING
	case spannerpb.TypeCode_BYTES, spannerpb.TypeCode_PROTO:
		return id == arrow.BINARY || id == arrow.LARGE_BINARY
	case spannerpb.TypeCode_INT64, spannerpb.TypeCode_ENUM:
		return arrow.IsInteger(id)
	case spannerpb.TypeCode_FLOAT64:
		return id == arrow.FLOAT64 || id == arrow.FLOAT32
	case spannerpb.TypeCode_FLOAT32:
		return id == arrow.FLOAT32
	case spannerpb.TypeCode_NUMERIC:
		return id == arrow.DECIMAL128 || arrow.IsInteger(id)
	case spannerpb.TypeCode_BOOL:
		return id == arrow.BOOL
	case spannerpb.TypeCode_DATE:
		return id == arrow.DATE32
	case spannerpb.TypeCode_TIMESTAMP:
		return id == arrow.TIMESTAMP || id == arrow.STRING
	case spannerpb.TypeCode_UUID:
		return id == arrow.FIXED_SIZE_BINARY && from.(*arrow.FixedSizeBinaryType).ByteWidth == 16
	}
	return false
}

// load writes all rows of a batch in one commit, or none.
func (l *columnLoader) load(ctx context.Context, batch arrow.RecordBatch) error {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, l.header...))
	defer cancel()
	stream, err := l.client.DoPut(ctx)
	if err != nil {
		return err
	}
	named := array.NewRecordBatch(l.schema, batch.Columns(), batch.NumRows())
	defer named.Release()
	w := flight.NewRecordWriter(stream, ipc.WithSchema(l.schema))
	w.SetFlightDescriptor(l.descriptor)
	sent := errors.Join(w.Write(named), w.Close(), stream.CloseSend())
	reply, err := stream.Recv() // if sending failed, the error of Recv gives the reason
	if err == io.EOF {
		err = errors.Join(sent, fmt.Errorf("the server did not answer a bulk load"))
	}
	if err != nil {
		return err
	}
	var done flightpb.DoPutUpdateResult
	if err := proto.Unmarshal(reply.AppMetadata, &done); err != nil {
		return err
	}
	if done.RecordCount != batch.NumRows() {
		return fmt.Errorf("the server says that it has written %d of %d rows", done.RecordCount, batch.NumRows())
	}
	return nil
}

// valueBytes estimates the number of bytes of the values [from, to) of an array. The type of the array must be one
// that loads accepts.
func valueBytes(d arrow.ArrayData, from, to int) int {
	n, t := to-from, d.DataType()
	for e, ok := t.(arrow.ExtensionType); ok; e, ok = t.(arrow.ExtensionType) {
		t = e.StorageType()
	}
	if n == 0 {
		return 0
	}
	at := d.Offset() + from
	switch t := t.(type) {
	case *arrow.ListType:
		offsets := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[at:]
		return 4*n + valueBytes(d.Children()[0], int(offsets[0]), int(offsets[n]))
	case *arrow.StringType, *arrow.BinaryType:
		offsets := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[at:]
		return 4*n + int(offsets[n]-offsets[0])
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		offsets := arrow.Int64Traits.CastFromBytes(d.Buffers()[1].Bytes())[at:]
		return 8*n + int(offsets[n]-offsets[0])
	case arrow.FixedWidthDataType:
		return n * t.BitWidth() / 8
	}
	return 0
}
