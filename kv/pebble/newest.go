package pebble

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// newestName is the name of the property of table files and their blocks that holds the newest version in them. Files that older releases wrote have none, or
// have it and their blocks have none.
const newestName = "crowfoot.newest"

// newest collects the timestamp of the newest version, of deletions, too: of a table file in 8 bytes, of a block of data or of an index in 7, big
// endian. What has a key without a version is as new as can be. That the lengths differ lets a filter ask of files alone.
type newest struct {
	version            uint64 // in the file
	block, last, index uint64 // in the block of data, the one before it, and the block of the index
}

const (
	fileNewest  = 8
	blockNewest = 7
	// maxBlockNewest stands for what is as new as can be: commits have lower timestamps until the year 4253.
	maxBlockNewest = 1<<(8*blockNewest) - 1
)

var _ pebble.BlockPropertyCollector = (*newest)(nil)

func newNewest() pebble.BlockPropertyCollector { return &newest{} }

// Name implements pebble.BlockPropertyCollector.
func (n *newest) Name() string { return newestName }

// AddPointKey implements pebble.BlockPropertyCollector.
func (n *newest) AddPointKey(key pebble.InternalKey, _ []byte) error {
	n.block = max(n.block, versionOf(key.UserKey))
	return nil
}

// versionOf is the timestamp of a key's version.
func versionOf(key []byte) uint64 {
	at := split(key)
	if at == len(key) {
		return math.MaxUint64
	}
	return ^binary.BigEndian.Uint64(key[at:])
}

// FinishTable implements pebble.BlockPropertyCollector.
func (n *newest) FinishTable(buf []byte) ([]byte, error) {
	return binary.BigEndian.AppendUint64(buf, max(n.version, n.block)), nil
}

// AddRangeKeys implements pebble.BlockPropertyCollector. There are no range keys.
func (n *newest) AddRangeKeys(sstable.Span) error { return nil }

// FinishDataBlock implements pebble.BlockPropertyCollector.
func (n *newest) FinishDataBlock(buf []byte) ([]byte, error) {
	n.last, n.block = n.block, 0
	n.version = max(n.version, n.last)
	return appendBlockNewest(buf, n.last), nil
}

// AddPrevDataBlockToIndexBlock implements pebble.BlockPropertyCollector.
func (n *newest) AddPrevDataBlockToIndexBlock() { n.index = max(n.index, n.last) }

// FinishIndexBlock implements pebble.BlockPropertyCollector.
func (n *newest) FinishIndexBlock(buf []byte) ([]byte, error) {
	newest := n.index
	n.index = 0
	return appendBlockNewest(buf, newest), nil
}

func appendBlockNewest(buf []byte, version uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], min(version, maxBlockNewest))
	return append(buf, b[len(b)-blockNewest:]...)
}

// SupportsSuffixReplacement implements pebble.BlockPropertyCollector.
func (n *newest) SupportsSuffixReplacement() bool { return false }

// AddCollectedWithSuffixReplacement implements pebble.BlockPropertyCollector.
func (n *newest) AddCollectedWithSuffixReplacement(_, _, _ []byte) error {
	return fmt.Errorf("%s: suffixes are never replaced", newestName)
}

// since is the filter of an iterator that leaves out table files without a version at or above it. Pebble applies their range deletions nevertheless. It
// leaves out no blocks: a seek that finds its block left out would go on to the next one that is not.
type since uint64

var _ pebble.BlockPropertyFilter = since(0)

// Name implements pebble.BlockPropertyFilter.
func (s since) Name() string { return newestName }

// Intersects implements pebble.BlockPropertyFilter.
func (s since) Intersects(prop []byte) (bool, error) {
	if len(prop) != fileNewest {
		return true, nil
	}
	return binary.BigEndian.Uint64(prop) >= uint64(s), nil
}

// SyntheticSuffixIntersects implements pebble.BlockPropertyFilter.
func (s since) SyntheticSuffixIntersects([]byte, []byte) (bool, error) { return true, nil }

// sinceInBlocks is since for an iterator that walks over a range: it leaves out blocks, too.
type sinceInBlocks struct{ since }

// Intersects implements pebble.BlockPropertyFilter. A block of a file that an older release wrote has no property.
func (s sinceInBlocks) Intersects(prop []byte) (bool, error) {
	if len(prop) != blockNewest {
		return s.since.Intersects(prop)
	}
	version := uint64(0)
	for _, b := range prop {
		version = version<<8 | uint64(b)
	}
	return version >= min(uint64(s.since), maxBlockNewest), nil
}
