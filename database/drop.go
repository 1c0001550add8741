package database

import (
	"errors"
	"fmt"
	"sync"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Dropped are databases that were dropped: durably, and for requests, which do not find them any more. What they hold is still there until Erase, which must follow.
type Dropped struct {
	registry  *Registry
	databases []*Database
	erased    chan struct{} // closed once all are
}

// DropDatabase removes a database with everything in it.
func (r *Registry) DropDatabase(name string) (*Dropped, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := (*r.databases.Load())[name]
	if d == nil {
		return nil, r.noDatabase(name)
	}
	return r.drop([]*Database{d}, func(kv.Batch) error { return nil })
}

// DeleteInstance removes an instance and its databases, all at once.
func (r *Registry) DeleteInstance(name string) (*Dropped, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.instance(name); err != nil {
		return nil, err
	}
	dropped, err := r.drop(r.databasesOf(name), func(b kv.Batch) error {
		return errors.Join(b.Delete(meta.Key(meta.Instance, name)), b.DeleteRange(meta.Range(meta.Operation+name+"/")))
	})
	if err != nil {
		return nil, err
	}
	delete(r.instances, name)
	return dropped, nil
}

// drop removes the records of databases durably, with what else remove removes, and takes the databases away from requests. If one is protected, or the store
// refuses it, all are as they were. mu is held, and not while work in the background ends: that is for Erase.
func (r *Registry) drop(list []*Database, remove func(kv.Batch) error) (*Dropped, error) {
	b := meta.NewBatch(r.store)
	defer b.Close()
	for _, d := range list {
		d.records.Lock()
		defer d.records.Unlock()
		if d.DropProtection() {
			return nil, usererror.DropProtected(d.name)
		}
		if err := d.removeRecord(b); err != nil {
			return nil, fmt.Errorf("drop database: %w", err)
		}
	}
	if err := errors.Join(remove(b), b.Commit()); err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	dropped := &Dropped{registry: r, databases: list, erased: make(chan struct{})}
	r.publish(func(m map[string]*Database) {
		for _, d := range list {
			d.dropped.Store(true)
			delete(m, d.name)
			r.dropping[d.name] = dropped
		}
	})
	return dropped, nil
}

// removeRecord removes in a batch the record of the database and its operations. Its key space is an orphan from then on.
func (d *Database) removeRecord(b kv.Batch) error {
	return errors.Join(
		b.Delete(meta.Key(meta.Database, d.name)),
		b.DeleteRange(meta.Range(meta.Operation+d.name+"/")),
		b.DeleteRange(meta.Range(meta.Applied+d.name+"/")),
		b.Put(orphanKey(d.space), nil),
	)
}

// Erase ends the background work of the databases and erases what they held. What open transactions still commit then, or all of it if the server goes down before, is
// erased by the next start. Others can make databases of the same names once it returns.
func (p *Dropped) Erase() {
	var erasing sync.WaitGroup
	for _, d := range p.databases {
		erasing.Go(d.erase)
	}
	erasing.Wait()
	p.registry.mu.Lock()
	defer p.registry.mu.Unlock()
	for _, d := range p.databases {
		delete(p.registry.dropping, d.name)
	}
	close(p.erased)
}

// erase erases a database that was dropped, once its background work has ended.
func (d *Database) erase() {
	d.close()
	r := d.registry
	b := meta.NewBatch(r.store)
	defer b.Close()
	err := errors.Join(
		b.DeleteRange(meta.Range(meta.Applied+d.name+"/")), // by a schema change that has run until now
		r.erase(b, d.space, usererror.DatabaseNotFound(d.name)),
		b.Commit(),
	)
	if err != nil {
		d.log().Error("erase a dropped database; the next start does it", "error", err)
	}
	d.rows.FreeSpace(nil, nil)
}
