package txn

import (
	"sync"
	"sync/atomic"
)

// recentCommits counts the commits that had something to write, and stores the keys of the newest ones. A scan that
// reads keys before it locks them asks recentCommits whether, between the read and the lock, a commit may have written
// in the range: see scanLock.
type recentCommits struct {
	count  atomic.Uint64 // number of commits; each is counted before it releases its locks
	mu     sync.Mutex
	newest *[keptCommits]written // the keys of commit n are at index n % keptCommits; nil before the first commit
}

// keptCommits is the number of newest commits whose keys are stored. If more than keptCommits commits came between the
// read and the lock of a scan, the scan reads its range again.
const keptCommits = 64

// add counts a commit and stores w, the keys that it wrote.
func (l *recentCommits) add(w *written) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.newest == nil {
		l.newest = new([keptCommits]written)
	}
	n := l.count.Load() + 1
	l.newest[n%keptCommits] = *w
	l.count.Store(n)
}

// quiet returns the number of commits so far. The parameter since is that number at an earlier time. The result quiet
// is true if no commit that was counted after that time can have written in [start, end).
func (l *recentCommits) quiet(since uint64, start, end string) (count uint64, quiet bool) {
	if count = l.count.Load(); count == since {
		return count, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	count = l.count.Load()
	if count-since > keptCommits {
		return count, false
	}
	for n := since + 1; n <= count; n++ {
		if l.newest[n%keptCommits].mayOverlap(start, end) {
			return count, false
		}
	}
	return count, true
}

// written holds the keys that a commit wrote: all of them if they are at most writtenKeys, otherwise only the first
// and the last.
type written struct {
	keys   [writtenKeys]prefix
	length uint8 // number of elements of the field keys in use
	many   bool  // if true, only the first and the last key are kept: keys[0] and keys[1]
}

// writtenKeys is the number of keys that are stored singly. It is large enough for a row and its entries in five
// indexes.
const writtenKeys = 6

// add adds a key. The caller may add keys in any order.
func (w *written) add(key []byte) {
	switch {
	case w.many:
		w.widen(key)
	case w.length < writtenKeys:
		w.keys[w.length] = prefixOf(key)
		w.length++
	default:
		few := w.keys
		*w = written{many: true, length: 2}
		w.keys[0], w.keys[1] = few[0], few[0]
		for i := range few {
			w.widen(few[i].text())
		}
		w.widen(key)
	}
}

// widen lowers the first key or raises the last key, so that key lies between them.
func (w *written) widen(key []byte) {
	key = key[:min(len(key), prefixSize)]
	if string(key) < string(w.keys[0].text()) {
		w.keys[0] = prefixOf(key)
	}
	if string(key) > string(w.keys[1].text()) {
		w.keys[1] = prefixOf(key)
	}
}

// mayOverlap reports whether one of the written keys may lie in [start, end).
func (w *written) mayOverlap(start, end string) bool {
	if w.many {
		return w.keys[0].before(end) && w.keys[1].reaches(start)
	}
	for i := range w.length {
		if k := &w.keys[i]; k.before(end) && k.reaches(start) {
			return true
		}
	}
	return false
}

// prefix is a key, or the first prefixSize bytes of a longer key.
type prefix struct {
	length uint8
	bytes  [prefixSize]byte
}

const prefixSize = 64

func prefixOf(key []byte) (p prefix) {
	p.length = uint8(copy(p.bytes[:], key))
	return p
}

func (p *prefix) text() []byte { return p.bytes[:p.length] }

// before reports whether the key of which p is the prefix may be before end.
func (p *prefix) before(end string) bool { return string(p.text()) < end }

// reaches reports whether the key of which p is the prefix may be at or after start.
func (p *prefix) reaches(start string) bool {
	if p.length == prefixSize { // the key may be longer than p
		start = start[:min(len(start), prefixSize)]
	}
	return string(p.text()) >= start
}
