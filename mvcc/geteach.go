package mvcc

import "github.com/crowfoot-db/crowfoot/kv"

// GetEach reads each key as Get does and calls found(i, val, ok) for keys[i]. val is valid until found returns. GetEach
// ends early when found returns false. Keys in descending order cost the least. If a key is higher than the one before,
// the iterator first steps over a few keys and looks for the key there. It seldom finds the key there, and must then
// seek it after all.
//
// The parameter since is a hint that most keys have a version at or above that timestamp; 0 means that the caller does
// not know. GetEach first looks for a key among the versions at or above that timestamp. This is fast if these versions
// were written lately, because then they are in few files. A version found there is the newest of its key, because the
// search leaves out only older versions. If GetEach does not find the key there, it reads the key as Get does.
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

// each is the state of one call of GetEach.
type each struct {
	versions  *Versions
	at, since Timestamp
	// The iterator in recent may leave out versions with timestamps below since. The iterator in whole shows all
	// versions. Both fields are nil until they are needed.
	recent, whole      kv.Iterator
	recentHits, misses int    // how many keys were found, and not found, with the iterator recent
	seek               []byte // the stored key that is sought
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
			e.recentHits++
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

// minRecent is the number of keys for which GetEach always searches the recent versions first. For later keys, it
// searches them first only while this search finds most keys.
const minRecent = 16

// pays reports whether get should first search the recent versions. It should if GetEach was called with a hint: always
// for the first minRecent keys, and then as long as this search has found most keys.
func (e *each) pays() bool {
	return e.since > 0 && (e.recentHits+e.misses < minRecent || e.recentHits > e.misses)
}

func (e *each) close() {
	for _, it := range []kv.Iterator{e.recent, e.whole} {
		if it != nil {
			_ = it.Close() // lookUp has already checked the iterator's errors
		}
	}
}
