package server

import (
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/server/result/resulttest"
	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// A countingStore counts the open iterators of a store, except those of point reads.
type countingStore struct {
	kv.Store
	open   atomic.Int64
	closed chan struct{} // receives a value when an iterator is closed
}

// NewIter implements kv.Store.
func (s *countingStore) NewIter(lower, upper []byte) (kv.Iterator, error) {
	it, err := s.Store.NewIter(lower, upper)
	if err != nil {
		return nil, err
	}
	s.open.Add(1)
	return countedIterator{it, s}, nil
}

type countedIterator struct {
	kv.Iterator
	store *countingStore
}

// Close implements kv.Iterator.
func (it countedIterator) Close() error {
	it.store.open.Add(-1)
	select {
	case it.store.closed <- struct{}{}:
	default:
	}
	return it.Iterator.Close()
}

// TestStalledStream checks that a stream has no open iterator while its client does not read the next message, because
// an iterator keeps overwritten data in memory and on disk. When the client continues, it must get the same rows as
// without the pause.
func TestStalledStream(t *testing.T) {
	h := newHarness(t)
	store := &countingStore{closed: make(chan struct{}, 1)}
	h.wrap = func(s kv.Store) kv.Store { store.Store = s; return store }
	h.restart()
	ses := h.session(true)
	bigRows(h, ses)
	read := &spannerpb.ReadRequest{Session: ses, Table: "Wide", Columns: []string{"Id", "A", "Tags", "B"}, KeySet: allKeys()}
	for name, c := range map[string]struct {
		method string
		req    proto.Message
	}{
		"READ":       {"StreamingRead", read},
		"descending": {"ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT Id, A, Tags, B FROM Wide ORDER BY Id DESC"}},
		"operators":  {"ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT Id, A, Tags, B FROM Wide WHERE LENGTH(B) = 3"}},
		"join":       {"ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT w.Id, w.A, v.Tags, v.B FROM Wide w JOIN Wide v ON v.Id >= w.Id ORDER BY w.Id"}},
	} {
		stream := func(stall int) (got []*spannerpb.PartialResultSet) {
			h.ok(h.stream(c.method, proto.Clone(c.req), func(m any) error {
				if len(got) == stall {
					for store.open.Load() > 0 {
						<-store.closed
					}
				}
				p := new(spannerpb.PartialResultSet)
				got = append(got, p)
				return m.(*rpc.Frame).Decode(p)
			}))
			return got
		}
		want := stream(-1)
		if got := stream(3); !sameValues(resulttest.Assemble(got), resulttest.Assemble(want)) {
			t.Errorf("%s: the stream that stalled differs", name)
		}
	}
}
