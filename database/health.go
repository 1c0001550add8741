package database

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/database/meta"
)

// Health is what a registry can do at the moment.
type Health struct {
	Reads  error // why it cannot read; nil if it can
	Writes error // why it refuses writes while reads go on, such as a full disk; nil if it takes them
}

// Health tries a read of the store and asks it whether it takes writes.
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
