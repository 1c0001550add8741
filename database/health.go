package database

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/database/meta"
)

// Health says whether a registry can read and write at the moment.
type Health struct {
	Reads  error // why reads fail; nil if they work
	Writes error // why writes are refused while reads go on, such as a full disk; nil if they are not
}

// Health tries a read of the store and asks the store whether it takes writes.
func (r *Registry) Health() Health {
	return Health{Reads: r.tryRead(), Writes: r.store.Writable()}
}

// tryRead reads one record. A store that is closed or broken may panic.
func (r *Registry) tryRead() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read the store: %v", p)
		}
	}()
	it, err := r.store.NewIter(meta.Range(meta.NextSpace))
	if err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	defer it.Close()
	it.First()
	return it.Error()
}
