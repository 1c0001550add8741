package database

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A Session is the stored form of a client's session, which therefore survives a restart. The key of the stored record
// contains the key space of the session's database. No key space is used for two databases, so a database that was
// dropped and made again does not have the old one's sessions.
type Session struct {
	ID          string            `json:"-"` // the last part of the session's name
	Multiplexed bool              `json:",omitempty"`
	Role        string            `json:",omitempty"`
	Labels      map[string]string `json:",omitempty"`
	Created     time.Time
	Used        int64 // Unix seconds of the session's last use before the record was written
}

// sessionBatch is the largest number of session records that NoteSessions writes in one batch.
const sessionBatch = 1000

func (d *Database) sessionKey(id string) []byte {
	return meta.Key(meta.OfSpace(meta.Session, d.space), id)
}

// AddSessions stores all new sessions durably, or none.
func (d *Database) AddSessions(list []Session) error {
	b := meta.NewBatch(d.registry.store)
	defer b.Close()
	for i := range list {
		if err := meta.Put(b, d.sessionKey(list[i].ID), &list[i]); err != nil {
			return err
		}
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("store sessions: %w", err)
	}
	if d.Dropped() { // the drop may have come before this commit, and then it has not deleted these sessions
		return d.forgetSessions()
	}
	return nil
}

// forgetSessions is called when the database was dropped while AddSessions stored sessions. It deletes all sessions of
// the database, and returns the error that the database was not found.
func (d *Database) forgetSessions() error {
	b := meta.NewBatch(d.registry.store)
	defer b.Close()
	if err := b.DeleteRange(meta.Range(meta.OfSpace(meta.Session, d.space))); err != nil {
		return err
	}
	return errors.Join(b.CommitNoSync(), usererror.DatabaseNotFound(d.name))
}

// RemoveSession deletes a session durably.
func (d *Database) RemoveSession(id string) error {
	b := meta.NewBatch(d.registry.store)
	defer b.Close()
	if err := b.Delete(d.sessionKey(id)); err != nil {
		return err
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("delete session: %w", err)
	}
	return nil
}

// NoteSessions stores the times of the last use of sessions, deletes expired sessions, and returns when both are
// durable. If it fails, it may have done a part of this work.
func (d *Database) NoteSessions(used []Session, expired []string) error {
	n := len(used) + len(expired)
	for from := 0; from < n; from += sessionBatch {
		to := min(from+sessionBatch, n)
		if err := d.noteSessions(used, expired, from, to); err != nil {
			return fmt.Errorf("note use of sessions: %w", err)
		}
	}
	return nil
}

// noteSessions writes one batch for NoteSessions: for the elements [from:to] of the list that has first all used
// sessions and then all expired ones. Only the last batch is synced, which makes the earlier ones durable, too.
func (d *Database) noteSessions(used []Session, expired []string, from, to int) error {
	b := meta.NewBatch(d.registry.store)
	defer b.Close()
	for i := from; i < to; i++ {
		var err error
		if i < len(used) {
			err = meta.Put(b, d.sessionKey(used[i].ID), &used[i])
		} else {
			err = b.Delete(d.sessionKey(expired[i-len(used)]))
		}
		if err != nil {
			return err
		}
	}
	if to < len(used)+len(expired) {
		return b.CommitNoSync()
	}
	return b.Commit()
}

// EachSession calls f for every stored session.
func (d *Database) EachSession(f func(Session)) error {
	prefix := meta.OfSpace(meta.Session, d.space)
	return meta.Each(d.registry.store, prefix, func(name string, data []byte) error {
		s := Session{ID: strings.TrimPrefix(name, prefix)}
		if err := json.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("read session: %w", err)
		}
		f(s)
		return nil
	})
}
