package pebble

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/wal"
)

// A log is a row of blocks of 32 KiB, and a block a row of chunks, which Pebble's package record describes:
//
//	CRC (4 bytes), length of the payload (2), type (1), number of the log (4), synced offset (8, not in types 5 to 8), payload
//
// The CRC covers what follows the length. A block's rest that is too short for a chunk is zeros. A log that was closed ends in
// a trailer, which is the beginning of a chunk of type 5 with the number of the next log. Behind the end there may be anything:
// zeros, or chunks of an older log whose file was used again.
//
// After a crash, a chunk that cannot be read may be the end: a write that was not complete, and that no client was told of.
// Or it is damage, and what follows was acknowledged. Pebble tells them apart by the synced offsets: each chunk says how much
// of the log was synced when it was made. But Pebble 2.1.7 counts in these offsets only what it wrote in parts of blocks and not the
// whole blocks (record.LogWriter.flushLoop adds up len(data) and forgets pending), and so takes most damage for the end
// where records are longer than a block. So scanLog proves more from the same offsets, and syncedFile says what they cannot.
const (
	logBlockBytes      = 32 << 10
	logHeaderBytes     = 11 // up to the synced offset
	logSyncHeaderBytes = 19
	logTypeRecyclable  = 5 // to 8
	logTypeSynced      = 9 // to 12
	logTypes           = 13
)

var errLogDamaged = errors.New("the write-ahead log is damaged")

// scanLog reads a log. End is where its last readable chunk ends, or its trailer; what follows is damage if end is below an
// offset that was synced. Proof is such an offset, as far as readable chunks behind end prove it; 0 if none does. Closed says that the log has a trailer.
func scanLog(r io.Reader, num wal.NumWAL) (end, proof int64, closed bool, err error) {
	s := logScan{num: uint32(num)}
	block := make([]byte, logBlockBytes)
	for start := int64(0); ; start += logBlockBytes {
		n, err := io.ReadFull(r, block)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return 0, 0, false, err
		}
		if s.broken {
			s.ahead(block[:n], 0)
		} else if at, ok := s.read(start, block[:n]); !ok {
			s.broken = true
			s.ahead(block[:n], at)
		}
		if s.closed || n < logBlockBytes {
			return s.end, s.proof(), s.closed, nil
		}
	}
}

// logScan is a scan under way.
type logScan struct {
	num    uint32
	end    int64
	closed bool // by a trailer
	broken bool // at end
	// offsets are the first, second and third synced offset that chunks behind end show, ascending, and 0 for those not shown yet; the
	// third is replaced by the last.
	offsets [3]uint64
	seen    int
}

// read reads chunks as long as they are sound. It returns where it stopped in the block, and ok if that is its end.
func (s *logScan) read(start int64, block []byte) (at int, ok bool) {
	for at < len(block) {
		rest := block[at:]
		if len(rest) < logSyncHeaderBytes && allZero(rest) && len(block) == logBlockBytes {
			s.end = start + logBlockBytes
			return at, true
		}
		if s.trailer(rest) {
			s.end, s.closed = start+int64(at+logHeaderBytes), true
			return at, true
		}
		n, _ := s.chunk(rest)
		if n == 0 {
			return at, false
		}
		at += n
		s.end = start + int64(at)
	}
	return at, true
}

// ahead looks for sound chunks in the rest of a block behind the damage. Where one is not sound the next may begin anywhere.
func (s *logScan) ahead(block []byte, at int) {
	for at < len(block) {
		n, synced := s.chunk(block[at:])
		if n == 0 {
			at++
			continue
		}
		s.shown(synced)
		at += n
	}
}

// shown notes the synced offset of a chunk behind the damage.
func (s *logScan) shown(synced uint64) {
	switch {
	case s.seen == 0 || s.seen < len(s.offsets) && synced > s.offsets[s.seen-1]:
		s.offsets[s.seen] = synced
		s.seen++
	case s.seen == len(s.offsets):
		s.offsets[2] = max(s.offsets[2], synced)
	}
}

// proof is an offset that was synced: one that a chunk shows, which is never more than the truth; or the byte behind
// the damage, if three offsets are shown. For one goroutine syncs the log, again and again, and each sync makes the offset grow. The chunk
// with the first offset was written before the sync that brought the second had ended. So was what is before that chunk, the
// damage included, and the sync that brought the third offset, which began afterwards, covered it.
func (s *logScan) proof() int64 {
	if s.seen == 0 {
		return 0
	}
	shown := int64(s.offsets[s.seen-1])
	if s.seen == len(s.offsets) {
		return max(shown, s.end+1)
	}
	return shown
}

// chunk returns the length of the chunk that b begins with, and its synced offset; 0 if it is not a sound one of this log.
func (s *logScan) chunk(b []byte) (n int, synced uint64) {
	if len(b) < logHeaderBytes || b[6] < logTypeRecyclable || b[6] >= logTypes || binary.LittleEndian.Uint32(b[7:]) != s.num {
		return 0, 0
	}
	header := logHeaderBytes
	if b[6] >= logTypeSynced {
		header = logSyncHeaderBytes
	}
	n = header + int(binary.LittleEndian.Uint16(b[4:]))
	if n > len(b) || logChecksum(b[6:n]) != binary.LittleEndian.Uint32(b) {
		return 0, 0
	}
	if header == logSyncHeaderBytes {
		synced = binary.LittleEndian.Uint64(b[logHeaderBytes:])
	}
	return n, synced
}

func (s *logScan) trailer(b []byte) bool {
	return len(b) >= logHeaderBytes && allZero(b[:6]) && b[6] == logTypeRecyclable && binary.LittleEndian.Uint32(b[7:]) == s.num+1
}

// logChecksum is CRC-32C, rotated and shifted as Pebble, RocksDB and LevelDB do.
func logChecksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
