package database

import (
	"errors"
	"fmt"
	"sync"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Dropped holds databases that were dropped durably and that requests no longer find. Their data stays in the store
// until Erase, which the caller must call.
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

// drop deletes the records of databases durably, and hides the databases from requests. It calls the function in the
// parameter remove, which can add further deletions to the same batch. If a database is protected, or the store refuses
// the writes, nothing changes. The caller holds mu. drop does not wait for background work; Erase does.
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

// removeRecord adds to batch b the deletion of the database's record and operations. It also adds a record that marks
// the key space as an orphan. If Erase does not erase that key space, the next start does.
func (d *Database) removeRecord(b kv.Batch) error {
	return errors.Join(
		b.Delete(meta.Key(meta.Database, d.name)),
		b.DeleteRange(meta.Range(meta.Operation+d.name+"/")),
		b.DeleteRange(meta.Range(meta.Applied+d.name+"/")),
		b.Put(orphanKey(d.space), nil),
	)
}

// Erase ends the background work of the databases and erases their data. Afterwards, databases of the same names can be
// made. If the process ends before Erase has finished, the next start erases the data. The next start also erases rows
// that open transactions commit after Erase.
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

// erase ends the background work of a dropped database and erases its data.
func (d *Database) erase() {
	d.close()
	r := d.registry
	b := meta.NewBatch(r.store)
	defer b.Close()
	err := errors.Join(
		b.DeleteRange(meta.Range(meta.Applied+d.name+"/")), // a schema change may have added such records before close
		r.erase(b, d.space, usererror.DatabaseNotFound(d.name)),
		b.Commit(),
	)
	if err != nil {
		d.log().Error("erase a dropped database; the next start does it", "error", err)
	}
	d.rows.FreeSpace(nil, nil)
}
