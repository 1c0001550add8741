package changestream

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// The names in the three kinds of keys, which the package comment describes.
const (
	recordName    = "changestream/record/"
	partitionName = "changestream/partition/"
	streamName    = "changestream/stream/"

	recordKeySize = 4 + len(recordName) + 4 + 8 + 8 + 8 + 4 + 1
)

// keyOf returns the prefix that all keys of one kind in a database begin with. The parameter numbers may narrow it
// to the keys of a stream, or of a partition of the stream.
func keyOf(name string, space mvcc.Space, numbers ...uint64) []byte {
	key := append(make([]byte, 4, recordKeySize), name...)
	key = binary.BigEndian.AppendUint32(key, uint32(space))
	for _, n := range numbers {
		key = binary.BigEndian.AppendUint64(key, n)
	}
	return key
}

// after returns the smallest key that is greater than all keys that begin with prefix. At least one byte of prefix
// must be below ff.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end
		}
	}
}

// rangeOf returns the bounds of all keys that begin with a prefix. The bounds end in 00, as all keys without a version
// do. If a bound ended in 09 instead, the store would take this byte for the end of a version's suffix.
func rangeOf(prefix []byte) (lower, upper []byte) {
	return append(slices.Clip(prefix), 0), append(after(prefix), 0)
}

func deletePrefix(b kv.Batch, prefix []byte) error { return b.DeleteRange(rangeOf(prefix)) }

// Erase adds to a batch the deletion of all change streams of a database.
func Erase(b kv.Batch, space mvcc.Space) error {
	return errors.Join(
		deletePrefix(b, keyOf(recordName, space)),
		deletePrefix(b, keyOf(partitionName, space)),
		deletePrefix(b, keyOf(streamName, space)),
	)
}

func putJSON(b kv.Batch, key []byte, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	return b.Put(key, data)
}

// each calls f for every key that begins with prefix. The parameter rest of f is the part of the key after the prefix,
// without the final 00. The parameter data is the value of the key, which is JSON.
func each(r kv.Reader, prefix []byte, f func(rest, data []byte) error) error {
	it, err := r.NewIter(rangeOf(prefix))
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		data, err := it.Value()
		if err != nil {
			return err
		}
		key := it.Key()
		if err := f(key[len(prefix):len(key)-1], data); err != nil {
			return err
		}
	}
	return it.Error()
}
