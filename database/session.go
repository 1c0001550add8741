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

// A Session is the stored form of a client's session, which so survives a restart. Its record lies under the key space
// of its database. No key space is given out twice, so a database that was dropped and made again does not know the
// sessions of the first.
type Session struct {
	ID          string            `json:"-"` // the last part of the session's name
	Multiplexed bool              `json:",omitempty"`
	Role        string            `json:",omitempty"`
	Labels      map[string]string `json:",omitempty"`
	Created     time.Time
	Used        int64 // Unix seconds of the last use before the record was written
}

// sessionBatch is the number of session records that one batch holds at most.
const sessionBatch = 1000

func (d *Database) sessionKey(id string) []byte {
	return meta.Key(meta.OfSpace(meta.Session, d.space), id)
}

// AddSessions stores all the new sessions, or none, and returns when they are durable.
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
	if d.Dropped() { // perhaps after the records of its sessions were deleted
		return d.forgetSessions()
	}
	return nil
}

// forgetSessions deletes the sessions of a dropped database. It returns an error that says that the database was not
// found.
func (d *Database) forgetSessions() error {
	b := meta.NewBatch(d.registry.store)
	defer b.Close()
	if err := b.DeleteRange(meta.Range(meta.OfSpace(meta.Session, d.space))); err != nil {
		return err
	}
	return errors.Join(b.CommitNoSync(), usererror.DatabaseNotFound(d.name))
}

// RemoveSession deletes a session and returns when the deletion is durable.
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

// NoteSessions stores the times of the last use of sessions, deletes sessions that have expired, and returns when both
// are durable. If it fails, it may have done a part.
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

// noteSessions does one batch of NoteSessions: the elements from from to to of used and expired, concatenated. Only the
// last batch is synced, which makes the earlier ones durable, too.
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
