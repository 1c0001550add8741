package server

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/listing"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A session is what a client works in. A regular one has one read-write
// transaction at a time; a multiplexed one has any number and is shared by all of a client's goroutines.
type session struct {
	name        string // projects/P/instances/I/databases/D/sessions/S
	db          *database.Database
	multiplexed bool
	role        string
	labels      map[string]string
	created     time.Time
	lastUsed    atomic.Int64 // Unix seconds

	mu     sync.Mutex
	active *transaction // the newest read-write transaction, of a regular session
}

// sessions holds all sessions of a server, and answers the requests about them. Look-ups take no lock.
type sessions struct {
	registry *database.Registry
	clock    func() time.Time
	random   io.Reader // where names come from
	byName   sync.Map  // string → *session
}

// sessionIDBytes is how many random bytes the name of a session has.
const sessionIDBytes = 16

// create makes a session of a database.
func (s *sessions) create(db *database.Database, template *spannerpb.Session) (*session, error) {
	if err := listing.CheckLabels(template.GetLabels()); err != nil {
		return nil, err
	}
	var id [sessionIDBytes]byte
	if _, err := s.random.Read(id[:]); err != nil {
		return nil, fmt.Errorf("draw a session id: %w", err)
	}
	now := s.clock()
	ses := &session{
		name:        db.Name() + "/sessions/" + hex.EncodeToString(id[:]),
		db:          db,
		multiplexed: template.GetMultiplexed(),
		role:        template.GetCreatorRole(),
		labels:      template.GetLabels(),
		created:     now,
	}
	ses.lastUsed.Store(now.Unix())
	s.byName.Store(ses.name, ses)
	return ses, nil
}

// find finds the session that a request names, and notes that it is in use.
func (s *sessions) find(name string) (*session, error) {
	v, ok := s.byName.Load(name)
	if !ok {
		return nil, s.noSession(name)
	}
	ses := v.(*session)
	if ses.db.Dropped() {
		s.byName.Delete(name)
		return nil, s.noSession(name)
	}
	if now := s.clock().Unix(); ses.lastUsed.Load() != now {
		ses.lastUsed.Store(now)
	}
	return ses, nil
}

// noSession says why there is no session of this name: the name is malformed, or its
// instance, its database or the session does not exist.
func (s *sessions) noSession(name string) error {
	db, id, ok := strings.Cut(name, "/sessions/")
	if !ok || id == "" || strings.Contains(id, "/") || database.CheckDatabaseName(db) != nil {
		return usererror.InvalidResourceName("session", name)
	}
	if _, err := s.registry.Database(db); err != nil {
		return err
	}
	return usererror.SessionNotFound(name)
}

// each calls f for the sessions of a database.
func (s *sessions) each(db string, f func(*session)) {
	s.byName.Range(func(_, v any) bool {
		if ses := v.(*session); ses.db.Name() == db && !ses.db.Dropped() {
			f(ses)
		}
		return true
	})
}

// end forgets a session and rolls its transaction back.
func (s *sessions) end(ses *session) {
	s.byName.Delete(ses.name)
	ses.mu.Lock()
	t := ses.active
	ses.active = nil
	ses.mu.Unlock()
	if t != nil {
		t.abandon()
	}
}

// Idle sessions: https://cloud.google.com/spanner/docs/sessions#handle_deleted_sessions.
// Multiplexed ones are replaced by their clients every 7 days and live for 28.
const (
	regularSessionIdle     = time.Hour
	multiplexedSessionLife = 28 * 24 * time.Hour
)

// sweep ends sessions that have been idle for too long and forgets those of dropped databases.
func (s *sessions) sweep(now time.Time) {
	s.byName.Range(func(_, v any) bool {
		ses := v.(*session)
		idle := now.Sub(time.Unix(ses.lastUsed.Load(), 0))
		limit := regularSessionIdle
		if ses.multiplexed {
			limit = multiplexedSessionLife
		}
		if idle > limit || ses.db.Dropped() {
			s.end(ses)
		}
		return true
	})
}

// id is the last part of the name.
func (ses *session) id() string { return ses.name[strings.LastIndexByte(ses.name, '/')+1:] }

func (ses *session) proto() *spannerpb.Session {
	return &spannerpb.Session{
		Name:                   ses.name,
		Labels:                 ses.labels,
		CreateTime:             timestamppb.New(ses.created),
		ApproximateLastUseTime: timestamppb.New(time.Unix(ses.lastUsed.Load(), 0)),
		CreatorRole:            ses.role,
		Multiplexed:            ses.multiplexed,
	}
}
