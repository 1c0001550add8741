package mvcc

import "github.com/crowfoot-db/crowfoot/kv"

// GetEach reads each key as Get does and calls found(i, val, ok) for keys[i]. val is valid until found returns.
// GetEach ends early when found returns false. Keys in descending order cost the least: before a forward seek, the
// iterator first tries the next few keys, which GetEach does not need.
//
// since is a hint: most keys have a version at or above since; 0 means that nothing is known. GetEach first looks for
// a key among such versions. If they were written lately, they are in few files, so that this is fast. A version that
// it finds there is the newest of the key, since the search leaves out only older versions. If GetEach does not find
// the key there, it reads the key as Get does.
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
	versions           *Versions
	at, since          Timestamp
	recent, whole      kv.Iterator // nil until they are needed
	recentHits, misses int         // how many keys were found, and not found, with recent
	seek               []byte
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

// minRecent is the number of keys that GetEach looks up among recent versions before it decides whether to continue to
// do so.
const minRecent = 16

// pays reports whether get should first look among recent versions. It should if since is known and most keys so far
// were found there.
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
