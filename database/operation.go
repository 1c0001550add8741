package database

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
)

// operationLife is how long an operation that has ended can be asked for, as on the service:
// https://cloud.google.com/spanner/docs/manage-and-observe-long-running-operations.
const operationLife = 7 * 24 * time.Hour

// Operation is a long-running operation that has ended. It is kept for clients that ask for it,
// also after a restart, until it is old or its instance or database is dropped.
type Operation struct {
	Name  string // <resource>/operations/<id>
	Ended time.Time
	Proto []byte // as the server answers it
}

// PutOperation keeps an operation, durably.
func (r *Registry) PutOperation(o Operation) error {
	if err := meta.Store(r.store, meta.Key(meta.Operation, o.Name), o); err != nil {
		return fmt.Errorf("store operation: %w", err)
	}
	return nil
}

// Operation finds an operation that is kept; nil if there is none of that name.
func (r *Registry) Operation(name string) (*Operation, error) {
	key := meta.Key(meta.Operation, name)
	it, err := r.store.NewIter(key, append(key, 0))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.First() {
		return nil, it.Error()
	}
	data, err := it.Value()
	if err != nil {
		return nil, err
	}
	o := new(Operation)
	if err := json.Unmarshal(data, o); err != nil {
		return nil, fmt.Errorf("read operation: %w", err)
	}
	return o, nil
}

// Operations lists the operations that are kept and whose names begin with prefix.
func (r *Registry) Operations(prefix string) (list []*Operation, err error) {
	err = meta.Each(r.store, meta.Operation+prefix, func(_ string, data []byte) error {
		o := new(Operation)
		if err := json.Unmarshal(data, o); err != nil {
			return fmt.Errorf("read operation: %w", err)
		}
		list = append(list, o)
		return nil
	})
	return list, err
}

// ForgetOperations deletes operations. Names that are not kept are ignored.
func (r *Registry) ForgetOperations(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	b := r.store.NewBatch()
	defer b.Close()
	for _, name := range names {
		if err := b.Delete(meta.Key(meta.Operation, name)); err != nil {
			return err
		}
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("forget operations: %w", err)
	}
	return nil
}

// sweepOperations deletes those that ended more than operationLife ago.
func (r *Registry) sweepOperations() error {
	list, err := r.Operations("")
	if err != nil {
		return err
	}
	var old []string
	for _, o := range list {
		if r.cfg.Clock().Sub(o.Ended) > operationLife {
			old = append(old, o.Name)
		}
	}
	return r.ForgetOperations(old...)
}
