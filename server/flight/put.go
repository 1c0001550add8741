package flight

import (
	"context"
	"errors"
	"io"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/arrowmessage"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// doPut answers DoPut: updates, parameters of prepared statements, and bulk ingest.
func (s *Service) doPut(ctx context.Context, first *flightpb.FlightData, c *rpc.Call) error {
	command, err := descriptorCommand(first.FlightDescriptor, c)
	if err != nil {
		return err
	}
	up := &upload{call: c, next: first}
	switch command := command.(type) {
	case *flightpb.CommandStatementUpdate:
		return s.putUpdate(ctx, command, c)
	case *flightpb.CommandPreparedStatementUpdate:
		return s.putPreparedUpdate(ctx, command, up, c)
	case *flightpb.CommandPreparedStatementQuery:
		return s.putParameters(ctx, command, up, c)
	case *flightpb.CommandStatementIngest:
		return s.ingest(ctx, command, up, c)
	}
	return usererror.UnknownFlightCommand(string(command.ProtoReflect().Descriptor().FullName()))
}

// answerCount sends the number of changed rows to the client.
func answerCount(c *rpc.Call, n int64) error {
	body, err := proto.Marshal(&flightpb.DoPutUpdateResult{RecordCount: n})
	if err != nil {
		return err
	}
	return c.Send(&flightpb.PutResult{AppMetadata: body})
}

// putUpdate answers CommandStatementUpdate: it runs a statement that writes.
func (s *Service) putUpdate(ctx context.Context, command *flightpb.CommandStatementUpdate, c *rpc.Call) error {
	t, err := s.statement(command.Query, command.TransactionId, c)
	if err != nil {
		return err
	}
	d, err := s.api.Announce(ctx, t.request, c)
	if err != nil {
		return err
	}
	n, err := s.update(ctx, t.request, d, c, nil)
	if err != nil {
		return err
	}
	return answerCount(c, n)
}

// update runs a statement that writes, in the transaction that req names, or in a new one. It returns the number of
// changed rows. If its last argument is not nil, update calls this function with the rows of THEN RETURN before
// anything is committed.
func (s *Service) update(ctx context.Context, req *spannerpb.ExecuteSqlRequest, d *Description, c *rpc.Call, returned func(*result.Result) error) (rows int64, err error) {
	if d.IsDDL {
		return 0, s.api.UpdateSchema(ctx, req.Session, req.Sql)
	}
	if !d.IsDML {
		return 0, usererror.FlightNotAnUpdate()
	}
	err = s.inTransaction(ctx, req, c, func(in *spannerpb.TransactionSelector) error {
		run := proto.Clone(req).(*spannerpb.ExecuteSqlRequest)
		run.Transaction, run.Seqno = in, s.seqno.Add(1)
		return s.api.Query(ctx, run, c, func(r *result.Result) error {
			rows = r.RowCount
			if returned == nil {
				return nil
			}
			return returned(r)
		})
	})
	return rows, err
}

// putPreparedUpdate runs a prepared statement that writes, once for each row of parameters. All executions are in one
// transaction.
func (s *Service) putPreparedUpdate(ctx context.Context, command *flightpb.CommandPreparedStatementUpdate, up *upload, c *rpc.Call) error {
	t, err := s.openPrepared(command.PreparedStatementHandle, c)
	if err != nil {
		return err
	}
	d, err := s.describePrepared(ctx, t, c)
	if err != nil {
		return err
	}
	if len(d.Parameters) == 0 || d.IsDDL {
		n, err := s.update(ctx, t.request, d, c, nil)
		if err != nil {
			return err
		}
		return answerCount(c, n)
	}
	if !d.IsDML {
		return usererror.FlightNotAnUpdate()
	}
	batches, err := s.statements(ctx, t, d, up)
	if err != nil {
		return err
	}
	total := int64(0)
	err = s.inTransaction(ctx, t.request, c, func(in *spannerpb.TransactionSelector) error {
		total = 0
		for _, statements := range batches {
			n, err := s.runBatch(ctx, &spannerpb.ExecuteBatchDmlRequest{Session: t.request.Session, Transaction: in, Seqno: s.seqno.Add(1), Statements: statements}, c)
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	if err != nil {
		return err
	}
	return answerCount(c, total)
}

// batchStatements is the maximum number of statements in one ExecuteBatchDml. Each row of parameters makes a statement.
const batchStatements = 1000

// statements returns a statement for each row of parameters of an upload, in batches of batchStatements. It charges
// their memory to the call.
func (s *Service) statements(ctx context.Context, t *ticket, d *Description, up *upload) (batches [][]*spannerpb.ExecuteBatchDmlRequest_Statement, err error) {
	err = s.eachRow(ctx, d, up, func(r boundRow) error {
		if n := len(batches); n == 0 || len(batches[n-1]) == batchStatements {
			batches = append(batches, nil)
		}
		last := &batches[len(batches)-1]
		*last = append(*last, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: t.request.Sql, Params: r.params, ParamTypes: r.types})
		return nil
	})
	return batches, err
}

// runBatch runs a batch of DML and returns the number of changed rows.
func (s *Service) runBatch(ctx context.Context, req *spannerpb.ExecuteBatchDmlRequest, c *rpc.Call) (rows int64, err error) {
	reply, err := s.api.ExecuteBatchDML(ctx, req, c)
	if err != nil {
		return 0, err
	}
	for _, r := range reply.ResultSets {
		rows += r.GetStats().GetRowCountExact()
	}
	err, c.Failure = c.Failure, nil // the failure becomes the error of the call
	return rows, err
}

// putParameters answers CommandPreparedStatementQuery of a DoPut: it binds values to the parameters of a prepared
// query. The client gets a new handle, which contains the values.
func (s *Service) putParameters(ctx context.Context, command *flightpb.CommandPreparedStatementQuery, up *upload, c *rpc.Call) error {
	t, err := s.openPrepared(command.PreparedStatementHandle, c)
	if err != nil {
		return err
	}
	own := t.request.Transaction
	d, err := s.describePrepared(ctx, t, c)
	if err != nil {
		return err
	}
	rows := 0
	err = s.eachRow(ctx, d, up, func(r boundRow) error {
		if rows++; rows > 1 {
			return usererror.FlightManyParameterRows()
		}
		t.request.Params, t.request.ParamTypes = r.params, r.types
		return nil
	})
	if err != nil {
		return err
	}
	// The new handle names the statement's original transaction, as the old one does, because each use of a handle
	// calls the method follow anew.
	t.request.Transaction = own
	sealed, err := t.seal(s.tokens)
	if err != nil {
		return err
	}
	body, err := proto.Marshal(&flightpb.DoPutPreparedStatementResult{PreparedStatementHandle: sealed})
	if err != nil {
		return err
	}
	return c.Send(&flightpb.PutResult{AppMetadata: body})
}

// describePrepared moves a prepared statement to the transaction in which it must run now (see follow), and returns its
// description. It ignores the values that the client has bound to the parameters.
func (s *Service) describePrepared(ctx context.Context, t *ticket, c *rpc.Call) (*Description, error) {
	s.follow(t, c)
	c.Request = t.request
	req := &spannerpb.ExecuteSqlRequest{Session: t.request.Session, Transaction: t.request.Transaction, Sql: t.request.Sql, QueryMode: spannerpb.ExecuteSqlRequest_PLAN}
	return s.api.Describe(ctx, req, c)
}

// eachRow calls the function do with the parameters that each row of an upload gives. It charges the memory of these
// parameters to the call.
func (s *Service) eachRow(ctx context.Context, d *Description, up *upload, do func(boundRow) error) error {
	return up.each(ctx, func(batch arrow.RecordBatch, _ int64) error {
		b, err := bindingOf(d, batch.Schema())
		if err != nil {
			return err
		}
		for row := range int(batch.NumRows()) {
			bytes := batchBytes(batch, row, row+1, mostBytes)
			if bytes > mostBytes {
				return usererror.RequestTooLarge(rpc.MaxRequestBytes)
			}
			if err := up.call.Memory.Grow(ctx, bytes*rowChunkFactor+boundRowBytes); err != nil {
				return err
			}
			r, err := b.bind(batch, row)
			if err != nil {
				return err
			}
			if err := do(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// An upload reads the Arrow messages that a client sends in a DoPut.
type upload struct {
	call *rpc.Call
	next *flightpb.FlightData // received but not yet read; nil if there is none
}

// message returns the next Arrow message, or io.EOF after the last one. The message is valid until the next call of
// message.
func (u *upload) message() (m arrowmessage.Message, err error) {
	for {
		data := u.next
		if u.next = nil; data == nil {
			data = new(flightpb.FlightData)
			if err := u.call.Receive(data); err != nil {
				return m, err
			}
		}
		if len(data.DataHeader) > 0 { // a message without a header has only metadata of the application
			return arrowmessage.Message{Metadata: data.DataHeader, Body: data.DataBody}, nil
		}
	}
}

// each calls the function do for each batch of rows. The batch is valid until the function returns. size is the number
// of bytes that stay in memory if the function retains the batch: the bytes of the message, the bytes that the decoder
// has allocated for the batch, and those of dictionaries that were replaced since the previous batch, because older
// batches may still use them. The memory of the decoder is charged to an account of its own.
func (u *upload) each(ctx context.Context, do func(batch arrow.RecordBatch, size int64) error) error {
	account := u.call.Memory.Beside(memory.Request)
	defer account.Close()
	err := u.read(do, func(n int64) error {
		if n <= 0 {
			account.Shrink(-n)
			return nil
		}
		return account.Grow(ctx, n, &u.call.Memory)
	})
	if malformed := (*arrowmessage.FormatError)(nil); errors.As(err, &malformed) {
		return usererror.InvalidArrowData(malformed.Error())
	}
	return err
}

// read calls the function do for each batch of rows. If the client sends no message, read returns no error.
func (u *upload) read(do func(batch arrow.RecordBatch, size int64) error, charge arrowmessage.Charge) error {
	first, err := u.message()
	if err != nil {
		return endOf(err)
	}
	decoder, err := arrowmessage.NewDecoder(first, charge)
	if err != nil {
		return err
	}
	defer decoder.Close()
	for {
		m, err := u.message()
		if err != nil {
			return endOf(err)
		}
		batch, err := decoder.Decode(m)
		if batch != nil {
			err = do(batch, int64(len(m.Body))+decoder.BatchBytes()+decoder.Replaced())
		}
		if err != nil {
			return err
		}
	}
}

// endOf returns err, or nil if err is io.EOF, the end of the stream.
func endOf(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
