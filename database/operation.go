package database

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// operationLife is how long an operation that has ended can be asked for, as on the service:
// https://cloud.google.com/spanner/docs/manage-and-observe-long-running-operations.
const operationLife = 7 * 24 * time.Hour

// Operation is a long-running operation. It is stored when it begins, so that another process can go on with it, and again when it
// ends. Then it is kept for clients that ask for it until it is old. It goes with its instance or database.
type Operation struct {
	Name    string // <resource>/operations/<id>
	Request []byte // that began it, if another process is to go on with it
	Started time.Time
	Ended   time.Time // zero while it runs
	// Cancelled says that a client has cancelled it while it ran: the next process does not go on with it.
	Cancelled bool   `json:",omitempty"`
	Proto     []byte // as the server answers it; while it runs, as it was when it began
}

// PutOperation stores an operation, durably. The statements of one that has ended are no longer needed.
func (r *Registry) PutOperation(o Operation) error {
	b := meta.NewBatch(r.store)
	defer b.Close()
	if err := meta.Put(b, meta.Key(meta.Operation, o.Name), o); err != nil {
		return err
	}
	if !o.Ended.IsZero() {
		if err := r.forgetApplied(b, o.Name); err != nil {
			return err
		}
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("store operation: %w", err)
	}
	return nil
}

// appliedRecord is a DDL statement of an operation, as stored with what it changed. Began is when the operation did: one of the same name may have
// been deleted while it ran.
type appliedRecord struct {
	At    mvcc.Timestamp
	Began time.Time
}

func appliedKey(operation string, number int) []byte {
	return meta.Key(meta.Applied, operation, fmt.Sprintf("/%06d", number))
}

// forgetApplied deletes what is stored of the statements of an operation, key by key: range deletions, one for each operation, would make every iterator dearer.
func (r *Registry) forgetApplied(b kv.Batch, operation string) error {
	return meta.Each(r.store, meta.Applied+operation+"/", func(name string, _ []byte) error { return b.Delete(meta.Key(name)) })
}

// Applied are the times at which the statements of a running operation took effect, as far as it has come.
func (r *Registry) Applied(o *Operation) (list []time.Time, err error) {
	err = meta.Each(r.store, meta.Applied+o.Name+"/", func(_ string, data []byte) error {
		var s appliedRecord
		if err := json.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("read statement of operation: %w", err)
		}
		if s.Began.Equal(o.Started) {
			list = append(list, s.At.Time())
		}
		return nil
	})
	return list, err
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
	return readOperation(it)
}

// Operations are the operations that are kept and whose names begin with prefix and come behind after, by name. An error is the last.
func (r *Registry) Operations(prefix, after string) iter.Seq2[*Operation, error] {
	return func(yield func(*Operation, error) bool) {
		lower, upper := meta.Range(meta.Operation + prefix)
		if after >= prefix {
			lower = append(meta.Key(meta.Operation, after), 0)
		}
		it, err := r.store.NewIter(lower, upper)
		if err != nil {
			yield(nil, err)
			return
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			o, err := readOperation(it)
			if !yield(o, err) || err != nil {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(nil, err)
		}
	}
}

// readOperation decodes the record that an iterator shows.
func readOperation(it kv.Iterator) (*Operation, error) {
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

// ForgetOperations deletes operations. Names that are not kept are ignored.
func (r *Registry) ForgetOperations(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	b := meta.NewBatch(r.store)
	defer b.Close()
	for _, name := range names {
		if err := b.Delete(meta.Key(meta.Operation, name)); err != nil {
			return err
		}
		if err := r.forgetApplied(b, name); err != nil {
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
	var old []string
	for o, err := range r.Operations("", "") {
		if err != nil {
			return err
		}
		if !o.Ended.IsZero() && r.cfg.Clock().Sub(o.Ended) > operationLife {
			old = append(old, o.Name)
		}
	}
	return r.ForgetOperations(old...)
}
