package flight

import (
	"encoding/binary"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// A ticket is state of the server that the client holds: the ticket of an endpoint, or the handle of a prepared
// statement or a transaction. It is opaque to clients. Its fields, with their lengths in bytes:
//
//	version 1 | kind 1 | flags 1 | length of request uvarint | request | data | checksum 8
type ticket struct {
	kind    ticketKind
	options columnar.Options
	// request is a statement, or a partition of a query. For a query that DoGet runs, the request names a transaction,
	// usually a read-only one that fixes the timestamp of the query. In some kinds of tickets the request has no
	// statement, and only names a session or a transaction.
	request *spannerpb.ExecuteSqlRequest
	// divided says that the server has divided the query, and request is one partition of it.
	divided bool
	// data depends on the kind: a command about metadata, rows, a spannerpb.ReadRequest, or the number of a connection
	// (see connection.go).
	data []byte
}

type ticketKind byte

const (
	ticketQuery       ticketKind = iota + 1 // DoGet runs the request
	ticketCommand                           // DoGet answers the command in data
	ticketRows                              // DoGet returns the rows in data, an Arrow stream
	ticketStatement                         // the handle of a prepared statement
	ticketTransaction                       // the handle of a transaction
	ticketRead                              // DoGet answers the ReadRequest in data
)

// endpointKinds are the kinds of tickets that an endpoint can have.
var endpointKinds = []ticketKind{ticketQuery, ticketCommand, ticketRows, ticketRead}

const (
	ticketVersion    = 1
	ticketHead       = 3
	flagMicroseconds = 1 // the bit of flags for columnar.Options.Microseconds
	flagDivided      = 2
)

// seal encodes a ticket, and signs it with k.
func (t *ticket) seal(k token.Key) ([]byte, error) {
	request, err := proto.MarshalOptions{Deterministic: true}.Marshal(t.request)
	if err != nil {
		return nil, err
	}
	flags := byte(0)
	if t.options.Microseconds {
		flags |= flagMicroseconds
	}
	if t.divided {
		flags |= flagDivided
	}
	dst := append(make([]byte, 0, ticketHead+binary.MaxVarintLen64+len(request)+len(t.data)+token.ChecksumSize), ticketVersion, byte(t.kind), flags)
	dst = append(binary.AppendUvarint(dst, uint64(len(request))), request...)
	return k.Seal(append(dst, t.data...), 0), nil
}

// openTicket decodes a ticket, which must be of one of the given kinds. The string in its fourth argument names the
// ticket in errors, for example "ticket" or "transaction_id".
func openTicket(k token.Key, c *rpc.Call, data []byte, what string, kinds ...ticketKind) (*ticket, error) {
	body, ok := k.Open(data)
	if !ok || len(body) < ticketHead || body[0] != ticketVersion {
		return nil, usererror.InvalidTicket(what)
	}
	flags := body[2]
	t := &ticket{kind: ticketKind(body[1]), options: columnar.Options{Microseconds: flags&flagMicroseconds != 0}, divided: flags&flagDivided != 0, request: new(spannerpb.ExecuteSqlRequest)}
	wanted := false
	for _, kind := range kinds {
		wanted = wanted || kind == t.kind
	}
	size, n := binary.Uvarint(body[ticketHead:])
	rest := body[ticketHead+max(n, 0):]
	if !wanted || n <= 0 || size > uint64(len(rest)) {
		return nil, usererror.InvalidTicket(what)
	}
	if err := c.ChargeDecoded(t.request, rest[:size]); err != nil {
		return nil, err
	}
	if proto.Unmarshal(rest[:size], t.request) != nil {
		return nil, usererror.InvalidTicket(what)
	}
	t.data = rest[size:]
	return t, nil
}
