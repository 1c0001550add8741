package crossings

import (
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const damaged = "damaged Flight load"

func init() {
	add(feature{name: damaged, happen: func(w *world) {
		for range 5 {
			w.loadDamaged()
		}
	}})
}

// sent records the Flight messages that load rows.
type sent struct{ messages []*flight.FlightData }

func (s *sent) Send(m *flight.FlightData) error {
	s.messages = append(s.messages, proto.Clone(m).(*flight.FlightData))
	return nil
}

// loadDamaged loads rows over Flight, in a transaction that is rolled back, after it has changed some bytes of a
// message. No row may remain in the table, and no memory may remain charged.
func (w *world) loadDamaged() {
	x := w.rowsToLoad(flightLoad, true, insert, insertOrUpdate, replace)
	if x == nil {
		return
	}
	w.endAll()
	o := x.operations[0]
	list, err := w.batches(o)
	if err != nil {
		w.fail("damaged load: %v", err)
		return
	}
	tx, err := w.flightSQL.BeginTransaction(w.flightContext())
	if err != nil {
		w.fail("damaged load: %v", err)
		return
	}
	messages, err := ingestMessages(o.table, tx.ID(), list)
	if err != nil {
		w.fail("damaged load: %v", err)
		return
	}
	m := pick(w.rng, messages)
	part := m.DataHeader
	if len(m.DataBody) > 0 && w.rng.IntN(3) == 0 {
		part = m.DataBody
	}
	for range 1 + w.rng.IntN(5) {
		part[w.rng.IntN(len(part))] = byte(w.rng.IntN(256))
	}
	err = w.put(messages, loadModes[o.verb])
	w.note("damaged load of %s: %v", o.table, err)
	switch code := status.Code(err); {
	case err == nil:
		w.counts["damaged loads taken"]++
	case code == codes.Internal || code == codes.Unknown || code == codes.Unavailable:
		w.fail("damaged load of %s: %v", o.table, err)
	default:
		w.counts["damaged loads refused"]++
	}
	if err := tx.Rollback(w.flightContext()); err != nil && status.Code(err) != codes.FailedPrecondition && status.Code(err) != codes.NotFound {
		w.fail("damaged load: rollback: %v", err)
	}
	w.happened(of(damaged), w.now().m.table(o.table).id)
	w.idle()
	if err := w.agrees(w.now().m); err != nil {
		w.fail("after a damaged load: %v", err)
	}
}

// ingestMessages returns the Flight messages that load batches into a table in a transaction.
func ingestMessages(table string, transaction []byte, list []arrow.RecordBatch) ([]*flight.FlightData, error) {
	command := &flightpb.CommandStatementIngest{Table: table, TransactionId: transaction, TableDefinitionOptions: &flightpb.CommandStatementIngest_TableDefinitionOptions{
		IfExists:   flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_APPEND,
		IfNotExist: flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_FAIL,
	}}
	if schema := schemaOf(table); schema != "" {
		name := strings.TrimSuffix(schema, ".")
		command.Schema, command.Table = &name, strings.TrimPrefix(table, schema)
	}
	packed, err := anypb.New(command)
	if err != nil {
		return nil, err
	}
	body, err := proto.Marshal(packed)
	if err != nil {
		return nil, err
	}
	to := &sent{}
	writer := flight.NewRecordWriter(to, ipc.WithSchema(list[0].Schema()))
	writer.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: body})
	for _, b := range list {
		err = errors.Join(err, writer.Write(b))
	}
	return to.messages, errors.Join(err, writer.Close())
}

// put sends messages and waits for the end of the reply.
func (w *world) put(messages []*flight.FlightData, mode string) error {
	stream, err := w.flightSQL.Client.DoPut(w.flightContext("ingest-mode", mode))
	if err != nil {
		return err
	}
	for _, m := range messages {
		if stream.Send(m) != nil {
			break // the reply holds the error
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
