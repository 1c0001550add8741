// Package meta stores what a server knows about its instances and databases: records of JSON in key space 0 of a store,
// unversioned, each under a name. The names begin with the constants below; statistics lie there too, in a coding of their
// own (package stats).
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
//	counter/<space>/<id>       below which a counter of a sequence has given out numbers
//	split/<space>/<key>        a split point of a user; its key is a logical key of the space
//	operation/<name>           a long-running operation
//	applied/<operation>/<n>    a DDL statement of an operation that runs, which has taken effect; from 0
//	session/<space>/<id>       a session of a client in the database with that key space
//	identity                   a secret, and how often the store was opened
//	orphan/<space>             a key space of no database, whose keys the next start erases: its database was dropped
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

// Key is the store's key of the record whose name is the parts, joined: space 0, the name, and the 0x00 that ends every logical key.
func Key(parts ...string) []byte {
	key := append(make([]byte, 0, 64), spacePrefix...)
	for _, p := range parts {
		key = append(key, p...)
	}
	return append(key, 0)
}

// OfSpace begins the names of the records of one kind (Schema, Table, Counter, SplitPoint or Session) that belong to the database with a key space.
func OfSpace(kind string, s mvcc.Space) string { return kind + strconv.FormatUint(uint64(s), 10) + "/" }

// Range is the range of keys of all records whose name begins with prefix.
func Range(prefix string) (lower, upper []byte) {
	lower = []byte(spacePrefix + prefix)
	upper = []byte(spacePrefix + prefix)
	upper[len(upper)-1]++
	return lower, upper
}

// NewBatch returns an empty batch for records, and for what is deleted with them. They are small, and without them a full disk could not be
// read or made empty: so they may use the reserve.
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

// Each calls f for every record whose name begins with prefix, in order of their names. f owns data, which is JSON or what
// Put's caller wrote otherwise.
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
