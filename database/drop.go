package database

import (
	"errors"
	"fmt"
	"sync"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Dropped holds databases that were dropped durably and that requests no longer find. Their data is in the store until
// Erase, which the caller must call.
type Dropped struct {
	registry  *Registry
	databases []*Database
	erased    chan struct{} // closed once all databases are erased
}

// DropDatabase drops a database. The caller must then erase its data: see Dropped.
func (r *Registry) DropDatabase(name string) (*Dropped, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := (*r.databases.Load())[name]
	if d == nil {
		return nil, r.noDatabase(name)
	}
	return r.drop([]*Database{d}, func(kv.Batch) error { return nil })
}

// DeleteInstance deletes an instance and drops its databases, all or none. The caller must then erase their data: see
// Dropped.
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

// drop removes the records of databases durably, together with the records that remove deletes, and hides the databases
// from requests. If a database is protected, or the store refuses the writes, nothing changes. The caller holds mu.
// drop does not wait for work in the background; Erase does.
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

// removeRecord adds to a batch the deletion of the database's record and operations, and records its key space as an
// orphan.
func (d *Database) removeRecord(b kv.Batch) error {
	return errors.Join(
		b.Delete(meta.Key(meta.Database, d.name)),
		b.DeleteRange(meta.Range(meta.Operation+d.name+"/")),
		b.DeleteRange(meta.Range(meta.Applied+d.name+"/")),
		b.Put(orphanKey(d.space), nil),
	)
}

// Erase ends the background work of the databases and erases their data. When it returns, others can make databases of
// the same names. The next start erases the rows that open transactions still commit, and all of the data if the
// process ends before.
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
		b.DeleteRange(meta.Range(meta.Applied+d.name+"/")), // a schema change may have added some until now
		r.erase(b, d.space, usererror.DatabaseNotFound(d.name)),
		b.Commit(),
	)
	if err != nil {
		d.log().Error("erase a dropped database; the next start does it", "error", err)
	}
	d.rows.FreeSpace(nil, nil)
}
