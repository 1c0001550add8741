package database

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
)

// Identity identifies the store. With it the server recognizes ids and tokens that it has issued for this store, even
// after a restart.
type Identity struct {
	// Secret is random. It is made when the store is made, and never shown to clients.
	Secret [16]byte
	// Start says how often the store has been opened; it is 1 in the first process. A process can make ids from Start
	// and a number that it counts in memory: no other process that opens the store makes the same id.
	Start uint32
}

// Identity returns the identity of the store.
func (r *Registry) Identity() Identity { return r.identity }

// identify loads the identity of the store, or makes one if there is none, and increments its Start durably.
func (r *Registry) identify() error {
	err := meta.Each(r.store, meta.Identity, func(_ string, data []byte) error { return json.Unmarshal(data, &r.identity) })
	if err != nil {
		return fmt.Errorf("read identity: %w", err)
	}
	if r.identity.Start == 0 {
		if _, err := rand.Read(r.identity.Secret[:]); err != nil {
			return fmt.Errorf("draw a secret: %w", err)
		}
	}
	r.identity.Start++
	if err := r.storeIdentity(); err != nil {
		return fmt.Errorf("store identity: %w", err)
	}
	return nil
}

const (
	// startPatience is how long a start waits while the disk is full. After a crash the store first writes the contents
	// of its log to table files, and then deletes the log files. For a moment the table files and the log files need
	// disk space together, so a disk that is full at first may soon have space again.
	startPatience = 5 * time.Second
	startPoll     = 100 * time.Millisecond
)

// storeIdentity stores the identity durably. It is the first write of a start, so it waits for disk space: see
// startPatience.
func (r *Registry) storeIdentity() error {
	for waited := time.Duration(0); ; waited += startPoll {
		err := meta.Store(r.store, meta.Key(meta.Identity), r.identity)
		if !errors.Is(err, kv.ErrRefused) || waited >= startPatience {
			return err
		}
		time.Sleep(startPoll)
	}
}
