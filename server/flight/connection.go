package flight

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// A prepared statement can outlive the transaction in which it was prepared, and the commands that run the statement
// name no transaction. Database drivers (ADBC's, on which Python's DB-API is built) keep the statement, end the
// transaction, begin the next one over the same connection, and expect that the statement runs in the new transaction.
// So the server remembers the newest transaction of each connection. The handles of transactions and of statements
// prepared in them contain the number of the connection.
//
// The server does not guess. If a connection has had two transactions open at once, or the command comes over another
// connection, the statement stays in the transaction in which it was prepared, and is refused once that transaction has
// ended.

// connections holds the connections over which transactions were begun.
type connections struct {
	last atomic.Uint64 // highest number of a connection so far
	mu   sync.Mutex
	of   map[string]*connection // by the client's address and port
}

// A connection is a connection over which transactions were begun.
type connection struct {
	number uint64
	newest *spannerpb.ExecuteSqlRequest // a request that names the newest transaction
	shared bool                         // two of its transactions were open at the same time
}

// keptConnections is the number of remembered connections. When it is reached, connections without an open transaction
// are forgotten.
const keptConnections = 10_000

// began records the newest transaction of the call's connection. The second argument is a request that names this
// transaction. began returns the connection's number, or 0 if the client's address is unknown. isOpen reports whether
// the transaction of a request is open.
func (cs *connections) began(c *rpc.Call, in *spannerpb.ExecuteSqlRequest, isOpen func(*spannerpb.ExecuteSqlRequest) bool) uint64 {
	address := c.Connection()
	if address == "" {
		return 0
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	at := cs.of[address]
	if at == nil {
		cs.makeRoom(isOpen)
		at = &connection{number: cs.last.Add(1)}
		cs.of[address] = at
	} else if isOpen(at.newest) {
		at.shared = true
	}
	at.newest = in
	return at.number
}

func (cs *connections) makeRoom(isOpen func(*spannerpb.ExecuteSqlRequest) bool) {
	if cs.of == nil {
		cs.of = map[string]*connection{}
	}
	if len(cs.of) < keptConnections {
		return
	}
	for address, c := range cs.of {
		if !isOpen(c.newest) {
			delete(cs.of, address)
		}
	}
}

// newest returns a request that names the newest transaction of the call's connection. It returns nil if the call came
// over another connection than the one with the given number, or if two transactions of this connection were open at
// once.
func (cs *connections) newest(c *rpc.Call, number uint64) *spannerpb.ExecuteSqlRequest {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if at := cs.of[c.Connection()]; at != nil && at.number == number && !at.shared {
		return at.newest
	}
	return nil
}

// follow moves a prepared statement whose transaction has ended to the newest transaction of its connection. If the
// client has already committed the newest transaction or rolled it back, the statement runs without a transaction.
func (s *Service) follow(t *ticket, c *rpc.Call) {
	if t.request.Transaction == nil || s.isOpen(t.request) {
		return
	}
	newest := s.connections.newest(c, t.connection())
	if newest == nil || newest.Session != t.request.Session {
		return
	}
	t.request.Transaction = newest.Transaction
	if s.state(newest) == TransactionEnded {
		t.request.Transaction = nil
	}
}

func (s *Service) isOpen(in *spannerpb.ExecuteSqlRequest) bool { return s.state(in) == TransactionOpen }

func (s *Service) state(in *spannerpb.ExecuteSqlRequest) TransactionState {
	return s.api.TransactionState(in.Session, in.Transaction.GetId())
}

// connection returns the number of the connection that is in the handle of a transaction, or of a statement prepared in
// a transaction. It returns 0 if the handle has none.
func (t *ticket) connection() uint64 {
	if len(t.data) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(t.data)
}

func (t *ticket) setConnection(number uint64) { t.data = binary.BigEndian.AppendUint64(nil, number) }
