package pebble

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// newestName is the name of a property of table files and of blocks: the timestamp of the newest version in the file
// or block. In files that older releases wrote, the blocks lack the property, or both the file and the blocks lack it.
const newestName = "crowfoot.newest"

// newest computes the property newestName for a file and for its blocks. The newest version may be a tombstone. The
// property is the timestamp of that version, in 8 bytes for a table file and 7 for a data or index block, big-endian.
// The lengths differ so that a filter can tell the property of a file from that of a block. A file or block with an
// unversioned key gets the greatest timestamp, so that no filter leaves it out.
type newest struct {
	version uint64 // newest version in the file
	// These are the newest versions in the current data block, in the data block before it, and in the index block.
	block, last, index uint64
}

const (
	fileNewest  = 8 // length in bytes of the property of a file
	blockNewest = 7 // length in bytes of the property of a block
	// maxBlockNewest is the greatest timestamp that the property of a block can hold. The timestamps of commits are
	// lower until the year 4253.
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

// versionOf returns the timestamp in a key; the greatest uint64 if the key has no version.
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

// AddRangeKeys implements pebble.BlockPropertyCollector. It does nothing, because Crowfoot writes no range keys.
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

// since is a filter that leaves out those table files that have no version at or above this timestamp. Pebble still
// applies the range deletions of these files. The filter does not leave out single blocks of a file, because a seek to
// a block that is left out would go on in a later block.
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

// sinceInBlocks is a filter for an iterator that scans a range. It leaves out the same files as a filter of type since,
// and also single blocks.
type sinceInBlocks struct{ since }

// Intersects implements pebble.BlockPropertyFilter. It returns true for a block without the property newestName,
// because the block may have any version: an older release wrote it.
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
