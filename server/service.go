package server

import (
	"time"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// A service implements google.spanner.v1.Spanner, the API to read and write rows. Its field sessions answers the
// requests about sessions.
type service struct {
	clock        func() time.Time
	tokens       token.Key
	sessions     sessions
	transactions transactions
	turns        *cpu.Turns // limits how many commits of many rows run at the same time
}

// turnsPerProcessor is how many commits of many rows may run at the same time for each processor. With two, one can
// compute while the other waits for rows from disk.
const turnsPerProcessor = 2

func newService(registry *database.Registry, cfg Config) (*service, error) {
	identity := registry.Identity()
	s := &service{clock: cfg.Clock, tokens: token.NewKey(identity.Secret), turns: cpu.NewTurns(turnsPerProcessor * cpu.Processors())}
	s.sessions.registry, s.sessions.clock, s.sessions.random, s.sessions.log = registry, cfg.Clock, cfg.Random, cfg.Log
	s.transactions.clock, s.transactions.tokens, s.transactions.start = cfg.Clock, s.tokens, identity.Start
	s.transactions.budget = cfg.Memory
	return s, s.sessions.load()
}

// table returns the table of the service's methods.
func (s *service) table() rpc.Service {
	return rpc.Service{Name: "google.spanner.v1.Spanner", Methods: []rpc.Method{
		rpc.Unary("CreateSession", s.sessions.createSession),
		rpc.Unary("BatchCreateSessions", s.sessions.batchCreateSessions),
		rpc.Unary("GetSession", s.sessions.getSession),
		rpc.Unary("ListSessions", s.sessions.listSessions),
		rpc.Unary("DeleteSession", s.sessions.deleteSession),
		rpc.MeterByKind(rpc.UnaryCall("ExecuteSql", s.executeSQL)),
		rpc.MeterByKind(rpc.Streaming("ExecuteStreamingSql", s.executeStreamingSQL)),
		rpc.MeterByKind(rpc.UnaryCall("ExecuteBatchDml", s.executeBatchDML)),
		rpc.MeterByKind(rpc.UnaryCall("Read", s.read)),
		rpc.MeterByKind(rpc.Streaming("StreamingRead", s.streamingRead)),
		rpc.UnaryCall("BeginTransaction", s.begin),
		rpc.UnaryCall("Commit", s.commit),
		rpc.Unary("Rollback", s.rollback),
		rpc.UnaryCall("PartitionQuery", s.partitionQuery),
		rpc.UnaryCall("PartitionRead", s.partitionRead),
		rpc.Streaming("BatchWrite", s.batchWrite),
	}}
}
