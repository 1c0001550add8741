package database

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/kv"
)

// operationLife is how long clients can still get an operation after it has ended. Cloud Spanner keeps operations for
// the same time: https://cloud.google.com/spanner/docs/manage-and-observe-long-running-operations.
const operationLife = 7 * 24 * time.Hour

// Operation is a long-running operation. It is stored when it begins, so that the next process can resume it, and again
// when it ends. It is deleted operationLife after its end, or with its instance or database.
type Operation struct {
	Name    string // <resource>/operations/<id>
	Request []byte // the request that began the operation, if the next process can resume it
	Started time.Time
	Ended   time.Time // zero while the operation runs
	// Cancelled says that a client cancelled the operation while it ran, so that the next process does not resume it.
	Cancelled bool `json:",omitempty"`
	// Proto is the serialized google.longrunning.Operation of the ended operation. While the operation runs, Proto
	// is the message that was stored at the beginning, so it shows no progress.
	Proto []byte
}

// PutOperation stores an operation durably. If the operation has ended, PutOperation also deletes the records that
// schemachange.Applied reads.
func (r *Registry) PutOperation(o Operation) error {
	b := meta.NewBatch(r.store)
	defer b.Close()
	if err := meta.Put(b, meta.Key(meta.Operation, o.Name), o); err != nil {
		return err
	}
	if !o.Ended.IsZero() {
		if err := schemachange.ForgetApplied(r.store, b, o.Name); err != nil {
			return err
		}
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("store operation: %w", err)
	}
	return nil
}

// Applied returns the times at which the statements of a running operation took effect, in order. It leaves out
// statements that have not taken effect yet.
func (r *Registry) Applied(o *Operation) ([]time.Time, error) {
	return schemachange.Applied(r.store, o.Name, o.Started)
}

// resumes reports whether the next process will resume the schema change of an operation. The parameter began says when
// the operation began. resumes returns false if the stored operation of this name began at another time, because it is
// then another operation.
func (r *Registry) resumes(name string, began time.Time) (bool, error) {
	o, err := r.Operation(name)
	return o != nil && o.Ended.IsZero() && !o.Cancelled && o.Started.Equal(began), err
}

// Operation returns the stored operation of a name; nil if there is none.
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

// Operations iterates, by name, over the stored operations whose names begin with prefix. It leaves out all names up to
// and including the one in the parameter after. The iteration ends after an error.
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

// readOperation decodes the record at an iterator's position.
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

// ForgetOperations deletes operations durably. It ignores names that no operation has.
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
		if err := schemachange.ForgetApplied(r.store, b, name); err != nil {
			return err
		}
	}
	if err := b.Commit(); err != nil {
		return fmt.Errorf("forget operations: %w", err)
	}
	return nil
}

// sweepOperations deletes the operations that ended more than operationLife ago.
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
