package schemachange

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// appliedRecord records that a DDL statement of an operation took effect. At is the timestamp at which it took effect,
// and Began is when the operation began. Began distinguishes the operation from a later one of the same name, in case
// the earlier one was deleted while it ran.
type appliedRecord struct {
	At    mvcc.Timestamp
	Began time.Time
}

func appliedKey(operation string, number int) []byte {
	return meta.Key(meta.Applied, operation, fmt.Sprintf("/%06d", number))
}

// Applied returns the times at which the statements of an operation took effect, in order. It leaves out statements
// that have not taken effect yet. The parameter began says when the operation began: Applied ignores the records of
// operations of the same name that began at another time.
func Applied(store kv.Store, operation string, began time.Time) (list []time.Time, err error) {
	err = meta.Each(store, meta.Applied+operation+"/", func(_ string, data []byte) error {
		var s appliedRecord
		if err := json.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("read statement of operation: %w", err)
		}
		if s.Began.Equal(began) {
			list = append(list, s.At.Time())
		}
		return nil
	})
	return list, err
}

// ForgetApplied adds to b the deletion of the records that Applied reads for an operation. It deletes key by key,
// because one range deletion for each operation would make every iterator slower.
func ForgetApplied(store kv.Store, b kv.Batch, operation string) error {
	return meta.Each(store, meta.Applied+operation+"/", func(name string, _ []byte) error { return b.Delete(meta.Key(name)) })
}
