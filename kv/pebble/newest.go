package pebble

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// newestName is the name of the property of a table file that holds its newest version. A file that an older release wrote has none.
const newestName = "crowfoot.newest"

// newest collects the timestamp of the newest version of a table file, of deletions, too: 8 bytes, big endian. A file with a key that has no version is as
// new as can be. Blocks have no such property: a seek that finds its block left out would go on to the next one that is not.
type newest struct{ version uint64 }

var _ pebble.BlockPropertyCollector = (*newest)(nil)

func newNewest() pebble.BlockPropertyCollector { return &newest{} }

// Name implements pebble.BlockPropertyCollector.
func (n *newest) Name() string { return newestName }

// AddPointKey implements pebble.BlockPropertyCollector.
func (n *newest) AddPointKey(key pebble.InternalKey, _ []byte) error {
	n.version = max(n.version, versionOf(key.UserKey))
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
	return binary.BigEndian.AppendUint64(buf, n.version), nil
}

// AddRangeKeys implements pebble.BlockPropertyCollector. There are no range keys.
func (n *newest) AddRangeKeys(sstable.Span) error { return nil }

// FinishDataBlock implements pebble.BlockPropertyCollector.
func (n *newest) FinishDataBlock([]byte) ([]byte, error) { return nil, nil }

// AddPrevDataBlockToIndexBlock implements pebble.BlockPropertyCollector.
func (n *newest) AddPrevDataBlockToIndexBlock() {}

// FinishIndexBlock implements pebble.BlockPropertyCollector.
func (n *newest) FinishIndexBlock([]byte) ([]byte, error) { return nil, nil }

// SupportsSuffixReplacement implements pebble.BlockPropertyCollector.
func (n *newest) SupportsSuffixReplacement() bool { return false }

// AddCollectedWithSuffixReplacement implements pebble.BlockPropertyCollector.
func (n *newest) AddCollectedWithSuffixReplacement(_, _, _ []byte) error {
	return fmt.Errorf("%s: suffixes are never replaced", newestName)
}

// since is the filter of an iterator that leaves out table files without a version at or above it. Pebble applies their range deletions nevertheless.
type since uint64

var _ pebble.BlockPropertyFilter = since(0)

// Name implements pebble.BlockPropertyFilter.
func (s since) Name() string { return newestName }

// Intersects implements pebble.BlockPropertyFilter. Blocks have no property.
func (s since) Intersects(prop []byte) (bool, error) {
	if len(prop) != 8 {
		return true, nil
	}
	return binary.BigEndian.Uint64(prop) >= uint64(s), nil
}

// SyntheticSuffixIntersects implements pebble.BlockPropertyFilter.
func (s since) SyntheticSuffixIntersects([]byte, []byte) (bool, error) { return true, nil }
