package stats

import (
	"encoding/binary"
	"log/slog"
	"strconv"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// storeName is the start of the names in the keys of statistics. A key consists of four zero bytes, which mean space 0,
// a name, and a zero byte, which means that the key has no version. A name has one of these forms:
//
//	stats/<space>/open                           the current minute, as it was when the method flush last stored it
//	stats/<space>/<resolution>/<family>/<end8>   one family in one interval; end is in seconds, 8 bytes big-endian
const storeName = "stats/"

// Range returns the range of keys that holds all statistics of the database with this key space. When the database is
// dropped, this range is deleted.
func Range(space mvcc.Space) (lower, upper []byte) {
	lower = prefix(space)
	upper = append([]byte(nil), lower...)
	upper[len(upper)-1]++
	return lower, upper
}

func prefix(space mvcc.Space) []byte {
	key := append(make([]byte, 4, 64), storeName...)
	return append(strconv.AppendUint(key, uint64(space), 10), '/')
}

func (c *Collector) openKey() []byte { return append(append(prefix(c.cfg.Space), "open"...), 0) }

func (c *Collector) key(resolution, family int, end time.Time) []byte {
	key := append(prefix(c.cfg.Space), resolutions[resolution].name...)
	key = append(append(append(key, '/'), families[family].name...), '/')
	return append(binary.BigEndian.AppendUint64(key, uint64(end.Unix())), 0)
}

// endOfKey returns the end of the interval that a key names.
func endOfKey(key []byte) time.Time {
	if len(key) < 9 {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(key[len(key)-9:])), 0)
}

// behind returns a key that sorts after the key of the interval ending at t and not after the keys of later intervals.
func (c *Collector) behind(resolution, family int, t time.Time) []byte {
	return c.key(resolution, family, t.Add(time.Second))
}

// each calls f for each stored interval that ends after the time in the parameter from and not after the time in
// until. The oldest interval comes first. If a record is damaged or comes from a later release, each logs that and
// skips the record.
func (c *Collector) each(resolution, family int, from, until time.Time, f func(end time.Time, r record) error) error {
	it, err := c.cfg.Store.NewIter(c.behind(resolution, family, from), c.behind(resolution, family, until))
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		end := endOfKey(it.Key())
		v, err := it.Value()
		if err != nil {
			return err
		}
		r, err := decodeRecord(v)
		if err != nil {
			c.cfg.Log.Warn("statistics of an interval cannot be read",
				slog.String("family", families[family].name), slog.Time("end", end.UTC()), slog.Any("error", err))
			continue
		}
		if err := f(end, r); err != nil {
			return err
		}
	}
	return it.Error()
}

// newest returns the end of the newest stored interval of a family, or the beginning of 1970 if there is none.
func (c *Collector) newest(resolution, family int) (time.Time, error) {
	it, err := c.cfg.Store.NewIter(c.key(resolution, family, time.Unix(0, 0)), c.key(resolution, family, time.Unix(1<<40, 0)))
	if err != nil {
		return time.Time{}, err
	}
	defer it.Close()
	if !it.Last() {
		return time.Unix(0, 0), it.Error()
	}
	return endOfKey(it.Key()), it.Error()
}

// prune deletes intervals whose retention has passed. The longer intervals that contain them lose nothing, because they
// were computed long before.
//
// It deletes the existing keys one by one, not key ranges. If a range deletion was added to the memtable, Pebble sorts
// all range deletions of the memtable when it next opens an iterator. With a range for each resolution and family of a
// thousand databases, this took much CPU time.
func (c *Collector) prune(now time.Time) error {
	b := c.cfg.Store.NewBatch()
	defer b.Close()
	for i := range resolutions {
		for f, family := range families {
			kept := now.Add(-family.retention(&resolutions[i]))
			if err := c.pruneFamily(b, c.key(i, f, time.Unix(0, 0)), c.behind(i, f, kept)); err != nil {
				return err
			}
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return b.CommitNoSync()
}

func (c *Collector) pruneFamily(b kv.Batch, lower, upper []byte) error {
	it, err := c.cfg.Store.NewIter(lower, upper)
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if err := b.Delete(it.Key()); err != nil {
			return err
		}
	}
	return it.Error()
}

// loadOpen loads the unfinished minute that an earlier process has stored, or returns nil if there is none. If the
// minute cannot be decoded, loadOpen logs that and returns nil.
func (c *Collector) loadOpen() (*set, error) {
	key := c.openKey()
	it, err := c.cfg.Store.NewIter(key, append(key[:len(key):len(key)], 0))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.First() {
		return nil, it.Error()
	}
	v, err := it.Value()
	if err != nil {
		return nil, err
	}
	s, err := decodeSet(v)
	if err != nil {
		c.cfg.Log.Warn("statistics of an open minute are lost", slog.Any("error", err))
		return nil, nil
	}
	return s, nil
}
