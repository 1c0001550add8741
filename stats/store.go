package stats

import (
	"encoding/binary"
	"log/slog"
	"strconv"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// Statistics live in space 0 of the store, unversioned, behind four zero bytes and before a zero byte:
//
//	stats/<space>/open                           the open minute, as of the last flush
//	stats/<space>/<resolution>/<family>/<end8>   one family in one interval; end in big-endian seconds
const storeName = "stats/"

// Range is the range of all statistics of a space: what goes when the database is dropped.
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

// endOfKey is the end of the interval that a key is of.
func endOfKey(key []byte) time.Time {
	if len(key) < 9 {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(key[len(key)-9:])), 0)
}

// behind is the key after that of the interval that ends at t.
func (c *Collector) behind(resolution, family int, t time.Time) []byte {
	return c.key(resolution, family, t.Add(time.Second))
}

// each calls f with the intervals that end after from, up to and including until, oldest first. A
// record that is damaged, or of a later release, is logged and left out: the others are as good as before.
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

// newest is the end of the newest interval that is stored, or 1970.
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

// prune deletes intervals whose retention is over. A minute's longer intervals have been made by then.
//
// It deletes those that are there, key by key: the engine sorts the range deletions that it has in memory whenever it opens an iterator after another one has come, and
// ranges for each interval of each of a thousand databases kept it busy.
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

// loadOpen takes up the open minute of a former process; nil if there is none. A family that cannot be read is dropped.
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
