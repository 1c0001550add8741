package mvcc

import "github.com/crowfoot-db/crowfoot/kv"

// GetEach reads keys as Get does, and hands found the value of keys[i], or that there is none; the value is good until found returns. It ends when found
// returns false. Keys in descending order cost the least: a seek forward tries the next keys first, which are not wanted.
//
// since is a version that most of the keys have, or a newer one; 0 is unknown. They are looked for among versions that are not older, which are in few
// files if they were written lately. If one is there, it is the newest: what was left out is older. A key that is not found so is read as by Get.
func (v *Versions) GetEach(keys [][]byte, at, since Timestamp, found func(i int, val []byte, ok bool) bool) error {
	e := each{versions: v, at: at, since: since}
	defer e.close()
	for i, key := range keys {
		val, ok, err := e.get(key)
		if err != nil {
			return err
		}
		if !found(i, val, ok) {
			break
		}
	}
	return v.readable(at)
}

// each is the state of one GetEach.
type each struct {
	versions      *Versions
	at, since     Timestamp
	recent, whole kv.Iterator // nil until they are needed
	hits, misses  int         // of recent
	seek          []byte
}

func (e *each) get(key []byte) (val []byte, ok bool, err error) {
	e.seek = e.versions.appendVersion(e.seek[:0], key, e.at)
	if e.pays() {
		if e.recent == nil {
			if e.recent, err = e.versions.store.kv.RecentIter(uint64(e.since)); err != nil {
				return nil, false, err
			}
		}
		val, version, ok, err := lookUp(e.recent, e.seek)
		if err != nil {
			return nil, false, err
		}
		if version >= e.since {
			e.hits++
			return val, ok, nil
		}
		e.misses++
	}
	if e.whole == nil {
		if e.whole, err = e.versions.store.kv.PointIter(); err != nil {
			return nil, false, err
		}
	}
	val, _, ok, err = lookUp(e.whole, e.seek)
	return val, ok, err
}

// minRecent is how many keys GetEach looks up among recent versions before it judges whether that pays.
const minRecent = 16

// pays says whether it is worth looking among recent versions first.
func (e *each) pays() bool {
	return e.since > 0 && (e.hits+e.misses < minRecent || e.hits > e.misses)
}

func (e *each) close() {
	for _, it := range []kv.Iterator{e.recent, e.whole} {
		if it != nil {
			_ = it.Close() // its errors were looked at
		}
	}
}
