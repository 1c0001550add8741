package server

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/listing"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A session is the context in which a client sends requests. A regular session has one read-write transaction at a
// time. A multiplexed session has any number of transactions, and all goroutines of a client share it.
type session struct {
	name   string // projects/P/instances/I/databases/D/sessions/S
	db     *database.Database
	stored database.Session // the record in the store; Used is the last use that was stored
	usage  usage            // when the session was last used; a multiplexed session does not count its running requests
	kept   int64            // bytes charged to the memory budget for the session

	mu     sync.Mutex
	active *transaction // the newest read-write transaction; only of a regular session
}

// sessions holds all sessions of a server, and answers the requests about sessions. Finding a session locks no mutex.
type sessions struct {
	registry *database.Registry
	clock    func() time.Time
	log      *slog.Logger
	random   io.Reader // source of random names
	byName   sync.Map  // string → *session
	// storing is locked for reading while a session is deleted, and for writing while a sweep stores when the sessions
	// were last used. Without this lock, the sweep could write the record of a deleted session again.
	storing sync.RWMutex
}

// load loads the sessions from the server's store.
func (s *sessions) load() error {
	for _, db := range s.registry.AllDatabases() {
		err := db.EachSession(func(stored database.Session) {
			size := sizeOf(db, &stored)
			if s.registry.KeepSessions(size, stored.Multiplexed) != nil {
				size = 0 // the budget is smaller than before; the session stays valid without a charge
			}
			s.add(db, stored, size)
		})
		if err != nil {
			return fmt.Errorf("load sessions of %s: %w", db.Name(), err)
		}
	}
	s.sweep(s.clock())
	return nil
}

// sessionIDBytes is the number of random bytes in the name of a session.
const sessionIDBytes = 16

// create creates n sessions of a database. When it returns, they are durable.
func (s *sessions) create(db *database.Database, template *spannerpb.Session, n int) ([]*session, error) {
	if err := listing.CheckLabels(template.GetLabels()); err != nil {
		return nil, err
	}
	if role := template.GetCreatorRole(); role != "" {
		if _, err := db.Catalog().AccessOf(role); err != nil {
			return nil, err
		}
	}
	now := s.clock()
	records := make([]database.Session, n)
	for i := range records {
		var id [sessionIDBytes]byte
		if _, err := s.random.Read(id[:]); err != nil {
			return nil, fmt.Errorf("draw a session id: %w", err)
		}
		records[i] = database.Session{
			ID:          hex.EncodeToString(id[:]),
			Multiplexed: template.GetMultiplexed(),
			Role:        template.GetCreatorRole(),
			Labels:      template.GetLabels(),
			Created:     now,
			Used:        now.Unix(),
		}
	}
	size := sizeOf(db, &records[0])
	if err := s.registry.KeepSessions(int64(n)*size, template.GetMultiplexed()); err != nil {
		return nil, err
	}
	if err := db.AddSessions(records); err != nil {
		s.registry.FreeSessions(int64(n) * size)
		return nil, err
	}
	list := make([]*session, n)
	for i, r := range records {
		list[i] = s.add(db, r, size)
	}
	return list, nil
}

// The memory of a session in bytes is sessionBytes, plus the length of its names and labels, plus labelBytes for each
// label. TestSessionsAreCharged checks these numbers.
const (
	sessionBytes = 700
	labelBytes   = 100
)

// sizeOf returns the approximate memory of a session in bytes.
func sizeOf(db *database.Database, stored *database.Session) int64 {
	n := sessionBytes + len(db.Name()) + len(stored.Role)
	for name, value := range stored.Labels {
		n += labelBytes + len(name) + len(value)
	}
	return int64(n)
}

// add adds a stored session to those that requests can find. kept is the number of bytes that were charged to the
// budget for the session.
func (s *sessions) add(db *database.Database, stored database.Session, kept int64) *session {
	name := db.Name() + "/sessions/" + stored.ID
	stored.ID = name[len(name)-len(stored.ID):] // shares the memory of name
	ses := &session{name: name, db: db, stored: stored, kept: kept}
	ses.usage.at(time.Unix(stored.Used, 0)) // set before a sweep can see the session
	s.byName.Store(name, ses)
	return ses
}

// find returns the session with this name, and records that the session is in use.
func (s *sessions) find(name string) (*session, error) {
	v, ok := s.byName.Load(name)
	if !ok {
		return nil, s.noSession(name)
	}
	ses := v.(*session)
	if ses.db.Dropped() {
		s.delete(ses)
		return nil, s.noSession(name)
	}
	ses.usage.at(s.clock())
	return ses, nil
}

// begin records that a request runs in the session; the caller must call end. begin does not count requests of a
// multiplexed session: they come from many goroutines, which would contend for the counter. Their number is not needed,
// because such a session lives equally long whether it is used or not.
func (ses *session) begin() {
	if !ses.stored.Multiplexed {
		ses.usage.begin()
	}
}

func (ses *session) end() {
	if !ses.stored.Multiplexed {
		ses.usage.end()
	}
}

// noSession returns the error for a request whose session was not found. The error says whether the name is malformed,
// or whether the instance, the database or the session does not exist.
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

// each calls f for each session of a database.
func (s *sessions) each(db string, f func(*session)) {
	s.byName.Range(func(_, v any) bool {
		if ses := v.(*session); ses.db.Name() == db && !ses.db.Dropped() {
			f(ses)
		}
		return true
	})
}

// remove deletes a session from the store and from memory. When it returns, the deletion is durable.
func (s *sessions) remove(ses *session) error {
	s.storing.RLock()
	defer s.storing.RUnlock()
	if err := ses.db.RemoveSession(ses.stored.ID); err != nil {
		return err
	}
	s.forget(ses)
	return nil
}

// forget removes a session from memory and rolls its transaction back.
func (s *sessions) forget(ses *session) {
	s.delete(ses)
	ses.mu.Lock()
	t := ses.active
	ses.active = nil
	ses.mu.Unlock()
	if t != nil {
		t.abandon()
	}
}

// delete removes a session from those that requests can find, and frees its memory in the budget.
func (s *sessions) delete(ses *session) {
	if _, known := s.byName.LoadAndDelete(ses.name); known {
		s.registry.FreeSessions(ses.kept)
	}
}

// A regular session is deleted after it was idle for regularSessionIdle:
// https://cloud.google.com/spanner/docs/sessions#handle_deleted_sessions. A multiplexed session lives for
// multiplexedSessionLife, used or not; clients replace theirs every 7 days.
const (
	regularSessionIdle     = time.Hour
	multiplexedSessionLife = 28 * 24 * time.Hour
)

// expired reports whether a regular session has been idle for too long, or a multiplexed one is too old. After a
// restart, the last use that is known is the one that the last sweep stored. The session may have been used after that
// sweep. So expired adds sweepInterval to the permitted idle time.
func (ses *session) expired(now time.Time) bool {
	if ses.stored.Multiplexed {
		return now.Sub(ses.stored.Created) > multiplexedSessionLife
	}
	return ses.usage.idle(now) > regularSessionIdle+sweepInterval
}

// sweep deletes expired sessions, stores when the other sessions were last used, and forgets sessions of dropped
// databases.
func (s *sessions) sweep(now time.Time) {
	type changes struct {
		used    []database.Session
		expired []string
	}
	changed := map[*database.Database]*changes{}
	of := func(ses *session) *changes {
		if changed[ses.db] == nil {
			changed[ses.db] = new(changes)
		}
		return changed[ses.db]
	}
	s.storing.Lock()
	defer s.storing.Unlock()
	s.byName.Range(func(_, v any) bool {
		ses := v.(*session)
		switch {
		case ses.db.Dropped():
			s.forget(ses)
		case ses.expired(now):
			s.forget(ses)
			c := of(ses)
			c.expired = append(c.expired, ses.stored.ID)
		case ses.stored.Used != ses.usage.last.Load():
			ses.stored.Used = ses.usage.last.Load()
			c := of(ses)
			c.used = append(c.used, ses.stored)
		}
		return true
	})
	for db, c := range changed {
		if err := db.NoteSessions(c.used, c.expired); err != nil && !db.Dropped() {
			s.log.Error("store the use of sessions", slog.String("database", db.Name()), slog.Any("error", err))
		}
	}
}

// id returns the last part of the session's name.
func (ses *session) id() string { return ses.stored.ID }

func (ses *session) proto() *spannerpb.Session {
	return &spannerpb.Session{
		Name:                   ses.name,
		Labels:                 ses.stored.Labels,
		CreateTime:             timestamppb.New(ses.stored.Created),
		ApproximateLastUseTime: timestamppb.New(time.Unix(ses.usage.last.Load(), 0)),
		CreatorRole:            ses.stored.Role,
		Multiplexed:            ses.stored.Multiplexed,
	}
}
