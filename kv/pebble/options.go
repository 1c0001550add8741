package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Sizes of memory and files. They are chosen for a server with a million rows of 1 kB. Such a server should use at most
// 700 MiB of memory, of which GoogleSQL's analyzer takes about 200 MiB, and should restart within half a second.
const (
	// memTableBytes is the size of a memtable in bytes. After a crash, the store must replay this much log for each
	// memtable that was not flushed. On a small disk, a memtable is smaller.
	memTableBytes = 16 << 20
	// memTables is the number of full memtables at which writers wait for a flush.
	memTables = 4
	// blockBytes is the size of a data block in bytes. It is small because a point read has to read, check and
	// decompress a whole block.
	blockBytes      = 4 << 10
	indexBlockBytes = 64 << 10
	// bloomBits is the number of bits per key in bloom filters. 10 bits give about 1% false positives.
	bloomBits = 10
	// When level 0 has l0Compaction sublevels, a compaction starts. When it has l0Stop sublevels, writers wait.
	l0Compaction = 4
	l0Stop       = 24
	lBaseBytes   = 64 << 20
)

// suffixMark and suffixLen describe the version suffix of a key (see package mvcc). The last byte of a key with a
// version is suffixMark.
const (
	suffixMark = 0x09
	suffixLen  = 9
)

// comparerName is stored in the data directory. If a release changed the order of keys, it would have to change this
// name, too. Then Pebble would refuse to open a directory whose keys have the old order.
const comparerName = "crowfoot.v1"

// options returns Pebble's options for a store on the file system fs, with a block cache of cacheBytes bytes. The
// parameter memTable is the size of a memtable in bytes. w measures the CPU time of compactions and flushes. g learns
// of their failures.
func options(fs vfs.FS, cacheBytes int64, memTable uint64, w *work, g *guardedFS) *pebble.Options {
	m := messages{fail: g.fail}
	listener := w.listener(g, m)
	_, files := Files()
	o := &pebble.Options{
		FS:                          fs,
		Comparer:                    comparer,
		Cache:                       pebble.NewCache(cacheBytes),
		MemTableSize:                memTable,
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       l0Compaction,
		L0StopWritesThreshold:       l0Stop,
		LBaseMaxBytes:               lBaseBytes,
		MaxOpenFiles:                files,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      m,
		EventListener:               &listener,
		BlockPropertyCollectors:     []func() pebble.BlockPropertyCollector{newNewest},
	}
	for i := range o.Levels {
		l := &o.Levels[i]
		l.BlockSize = blockBytes
		l.IndexBlockSize = indexBlockBytes
		l.FilterPolicy = bloom.FilterPolicy(bloomBits)
		l.FilterType = pebble.TableFilter
		l.Compression = func() *sstable.CompressionProfile { return sstable.FastestCompression }
	}
	return o
}

// comparer orders keys by bytes.Compare. Its Split returns the logical key, so bloom filters and NextPrefix work on
// logical keys.
var comparer = &pebble.Comparer{
	Name:                 comparerName,
	Compare:              bytes.Compare,
	Equal:                bytes.Equal,
	ComparePointSuffixes: bytes.Compare,
	CompareRangeSuffixes: bytes.Compare,
	Split:                split,
	AbbreviatedKey:       pebble.DefaultComparer.AbbreviatedKey,
	Separator:            separator,
	Successor:            successor,
	ImmediateSuccessor:   immediateSuccessor,
	FormatKey:            formatKey,
}

// split returns the length of the logical key at the start of key. Keys without a version, and bounds, never end in
// suffixMark.
func split(key []byte) int {
	n := len(key)
	if n >= suffixLen && key[n-1] == suffixMark {
		return n - suffixLen
	}
	return n
}

// separator appends a key that is at least a and less than b, and as short as possible. It shortens only the logical
// key of a, so that no key in an index block looks as if it had a version that it does not have.
func separator(dst, a, b []byte) []byte {
	start := len(dst)
	an, bn := split(a), split(b)
	dst = pebble.DefaultComparer.Separator(dst, a[:an], b[:bn])
	s := dst[start:]
	if len(s) == 0 || bytes.Compare(s, a) < 0 || s[len(s)-1] == suffixMark {
		return append(dst[:start], a...)
	}
	return dst
}

// immediateSuccessor appends the least key that sorts after a logical key and all its versions. The logical key with a
// zero byte appended would sort before the versions.
func immediateSuccessor(dst, a []byte) []byte {
	dst = append(dst, a...)
	if n := len(a); n > 0 && a[n-1] == 0 {
		dst[len(dst)-1] = 1
		return dst
	}
	return append(dst, 0)
}

func successor(dst, a []byte) []byte {
	start := len(dst)
	dst = pebble.DefaultComparer.Successor(dst, a[:split(a)])
	s := dst[start:]
	if bytes.Compare(s, a) < 0 || (len(s) > 0 && s[len(s)-1] == suffixMark) {
		return append(dst[:start], a...)
	}
	return dst
}

// formatKey formats a key for Pebble's messages as the quoted logical key, followed by @ and the version.
func formatKey(key []byte) fmt.Formatter { return printedKey(key) }

type printedKey []byte

func (k printedKey) Format(f fmt.State, _ rune) {
	n := split(k)
	text := strconv.AppendQuoteToASCII(nil, string(k[:n]))
	if n < len(k) {
		text = strconv.AppendUint(append(text, '@'), ^binary.BigEndian.Uint64(k[n:]), 10)
	}
	_, _ = f.Write(text)
}
