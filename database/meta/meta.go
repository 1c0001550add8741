// Package meta stores the metadata of instances and databases: JSON records in key space 0 of a store, without
// versions, each under a name. The names begin with the constants below. Statistics are in key space 0 too, in another
// encoding (package stats).
//
// Imports of this module: kv, mvcc.
package meta

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// Names of records begin with one of these:
//
//	instance/<name>            an instance
//	database/<name>            a database
//	schema/<space>/<version>   a schema version of the database with that key space
//	table/<space>/<id>/<version>   a table as that schema version has defined it
//	counter/<space>/<id>       the bound below which a counter of a sequence may have given out numbers
//	split/<space>/<key>        a split point of a user; a split of the database begins at this key
//	operation/<name>           a long-running operation
//	applied/<operation>/<n>    the n-th DDL statement of a running operation, which has taken effect; from 0
//	session/<space>/<id>       a session of a client in the database with that key space
//	identity                   a secret, and the number of times that the store was opened
//	orphan/<space>             a key space of a dropped database, which the next start erases
//	next-space                 the next key space to give out
const (
	Instance   = "instance/"
	Database   = "database/"
	Schema     = "schema/"
	Table      = "table/"
	Counter    = "counter/"
	SplitPoint = "split/"
	Operation  = "operation/"
	Applied    = "applied/"
	Session    = "session/"
	Orphan     = "orphan/"
	Identity   = "identity"
	NextSpace  = "next-space"
)

// spacePrefix begins every key of space 0.
const spacePrefix = "\x00\x00\x00\x00"

// Key returns the key of a record in the store: key space 0, the record's name, and the 0x00 that ends every logical
// key. The name is the concatenation of parts.
func Key(parts ...string) []byte {
	key := append(make([]byte, 0, 64), spacePrefix...)
	for _, p := range parts {
		key = append(key, p...)
	}
	return append(key, 0)
}

// OfSpace returns the prefix of the names of a database's records of one kind (Schema, Table, Counter, SplitPoint or
// Session). s is the key space of the database.
func OfSpace(kind string, s mvcc.Space) string { return kind + strconv.FormatUint(uint64(s), 10) + "/" }

// Range returns the range of the keys of all records whose names begin with prefix.
func Range(prefix string) (lower, upper []byte) {
	lower = []byte(spacePrefix + prefix)
	upper = []byte(spacePrefix + prefix)
	upper[len(upper)-1]++
	return lower, upper
}

// NewBatch returns an empty batch for records. The caller may add deletions of other keys that must be committed
// together with the records. The store accepts the batch even while the disk is nearly full (see kv.Batch.UseReserve),
// because records are small, and are needed then to read data and to delete data.
func NewBatch(s kv.Store) kv.Batch {
	b := s.NewBatch()
	b.UseReserve()
	return b
}

// Put adds a record to a batch.
func Put(b kv.Batch, key []byte, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	return b.Put(key, data)
}

// Store stores one record durably.
func Store(s kv.Store, key []byte, record any) error {
	b := NewBatch(s)
	defer b.Close()
	if err := Put(b, key, record); err != nil {
		return err
	}
	return b.Commit()
}

// Each calls f for every record whose name begins with prefix, in order of the names. f may keep and modify data. data
// is JSON if Put has written the record.
func Each(s kv.Store, prefix string, f func(name string, data []byte) error) error {
	lower, upper := Range(prefix)
	it, err := s.NewIter(lower, upper)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			return err
		}
		key := it.Key()
		if err := f(string(key[len(spacePrefix):len(key)-1]), append([]byte(nil), v...)); err != nil {
			return err
		}
	}
	return it.Error()
}
