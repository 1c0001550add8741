package database

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/database/meta"
)

// Health says whether the store of a registry can be read and written at the moment.
type Health struct {
	Reads  error // why reads fail; nil if reads work
	Writes error // why the store refuses writes, for example because the disk is full; nil if it accepts writes
}

// Health tries a read of the store and asks the store whether it takes writes.
func (r *Registry) Health() Health {
	return Health{Reads: r.tryRead(), Writes: r.store.Writable()}
}

// tryRead reads one record. If the store panics, because it is closed or broken, tryRead returns an error.
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
