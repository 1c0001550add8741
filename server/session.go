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

// A session is what a client works in. A regular one has one read-write
// transaction at a time; a multiplexed one has any number and is shared by all of a client's goroutines.
type session struct {
	name   string // projects/P/instances/I/databases/D/sessions/S
	db     *database.Database
	stored database.Session // the store's record; its Used is that of the record
	usage  usage            // of a multiplexed session, without the requests that are running
	kept   int64            // bytes that its memory was charged

	mu     sync.Mutex
	active *transaction // the newest read-write transaction, of a regular session
}

// sessions holds all sessions of a server, and answers the requests about them. Look-ups take no lock.
type sessions struct {
	registry *database.Registry
	clock    func() time.Time
	log      *slog.Logger
	random   io.Reader // where names come from
	byName   sync.Map  // string → *session
	// storing is locked for reading while a session is deleted, and for writing while the use of sessions is stored, which must not
	// bring back a record that has been deleted.
	storing sync.RWMutex
}

// load takes over the sessions of the server's store, as they were when it stopped.
func (s *sessions) load() error {
	for _, db := range s.registry.AllDatabases() {
		err := db.EachSession(func(stored database.Session) {
			size := sizeOf(db, &stored)
			if s.registry.KeepSessions(size, stored.Multiplexed) != nil {
				size = 0 // the server has less memory than before; its clients' sessions are good all the same
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

// sessionIDBytes is how many random bytes the name of a session has.
const sessionIDBytes = 16

// create makes n sessions of a database. When it returns they are durable.
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

// What a session takes: sessionBytes beside its name and labels, and labelBytes more for each label. TestSessionsAreCharged measures it.
const (
	sessionBytes = 700
	labelBytes   = 100
)

// sizeOf is what a session takes in memory.
func sizeOf(db *database.Database, stored *database.Session) int64 {
	n := sessionBytes + len(db.Name()) + len(stored.Role)
	for name, value := range stored.Labels {
		n += labelBytes + len(name) + len(value)
	}
	return int64(n)
}

// add makes a stored session known to requests. It was charged kept bytes.
func (s *sessions) add(db *database.Database, stored database.Session, kept int64) *session {
	name := db.Name() + "/sessions/" + stored.ID
	stored.ID = name[len(name)-len(stored.ID):] // shares its memory
	ses := &session{name: name, db: db, stored: stored, kept: kept}
	ses.usage.at(time.Unix(stored.Used, 0)) // before a sweep can see it
	s.byName.Store(name, ses)
	return ses
}

// find finds the session that a request names, and notes that it is in use.
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

// begin notes that a request runs in the session; end must follow. Requests of a multiplexed session come from many goroutines, and its
// life does not depend on its use: they are not counted, so that they share no counter.
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

// remove deletes a session durably.
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

// delete makes a session unknown to requests.
func (s *sessions) delete(ses *session) {
	if _, known := s.byName.LoadAndDelete(ses.name); known {
		s.registry.FreeSessions(ses.kept)
	}
}

// Idle sessions: https://cloud.google.com/spanner/docs/sessions#handle_deleted_sessions.
// Multiplexed ones are replaced by their clients every 7 days and live for 28.
const (
	regularSessionIdle     = time.Hour
	multiplexedSessionLife = 28 * 24 * time.Hour
)

// expired says whether the session has been idle, or has lived, for too long. After a restart its last use is what a sweep has stored, and
// it may have been used until the next one.
func (ses *session) expired(now time.Time) bool {
	if ses.stored.Multiplexed {
		return now.Sub(ses.stored.Created) > multiplexedSessionLife
	}
	return ses.usage.idle(now) > regularSessionIdle+sweepInterval
}

// sweep ends sessions that have expired, stores when the others were last used, and forgets those of dropped databases.
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

// id is the last part of the name.
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
