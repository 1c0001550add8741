package txn

import (
	"math/rand/v2"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
)

// slowStore is a store whose commits take random time before and after the batch is applied, as on a disk, so that
// commits overlap.
type slowStore struct{ kv.Store }

const slowest = 200 * time.Microsecond

func (s slowStore) NewBatch() kv.Batch { return slowBatch{s.Store.NewBatch()} }

type slowBatch struct{ kv.Batch }

func (b slowBatch) Commit() error {
	time.Sleep(rand.N(slowest))
	err := b.Batch.Commit()
	time.Sleep(rand.N(slowest))
	return err
}
