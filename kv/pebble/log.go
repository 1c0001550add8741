package pebble

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/wal"
)

// A log is a sequence of blocks of 32 KiB, and each block is a sequence of chunks. Pebble's package record describes
// the chunks:
//
//	CRC (4 bytes), length of the payload (2), type (1), number of the log (4),
//	synced offset (8, not in types 5 to 8), payload
//
// The CRC covers the bytes after the length. A remainder of a block that is too short for a chunk is filled with
// zeros. A log that was closed ends in a trailer, which is the beginning of a chunk of type 5 with the number of the
// next log. After the end there may be zeros, or chunks of an older log whose file was reused.
//
// After a crash, a chunk that cannot be read may be the end of the log: an incomplete write of a commit that was not
// acknowledged. Or it is damage, and the commits in the chunks after it were acknowledged. Pebble distinguishes the
// two cases by the synced offsets: each chunk records how much of the log was synced when the chunk was made. But
// Pebble 2.1.7 counts in these offsets only the partial blocks that it wrote, not the whole blocks
// (record.LogWriter.flushLoop adds up len(data) and forgets pending). So if records are longer than a block, Pebble
// takes most damage for the end of the log. scanLog can prove damage in more cases from the same offsets, and
// syncedFile covers the remaining cases.
const (
	logBlockBytes      = 32 << 10
	logHeaderBytes     = 11 // bytes of a chunk before the synced offset
	logSyncHeaderBytes = 19 // bytes of a chunk before the payload, in chunks with a synced offset
	logTypeRecyclable  = 5  // chunks of types 5 to 8 have no synced offset
	logTypeSynced      = 9  // chunks of types 9 to 12 have a synced offset
	logTypes           = 13 // all types of chunks are lower
)

var errLogDamaged = errors.New("the write-ahead log is damaged")

// scanLog reads a log. end is the offset after the last readable chunk before any damage, or after the trailer if there
// is one. closed reports whether the log has a trailer. If readable chunks after the offset end prove up to which
// offset the log was synced, proof is that offset; else it is 0. The log is damaged at the offset end if it is known to
// have been synced up to a greater offset.
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

// logScan is the state of a scan of a log.
type logScan struct {
	num    uint32 // the log's number
	end    int64  // offset after the last readable chunk before any damage
	closed bool   // whether the log has a trailer
	broken bool   // whether the chunk at the offset in the field end cannot be read
	// offsets are the first, second and last of the different synced offsets in chunks after the damage, in ascending
	// order; 0 for those that were not found yet.
	offsets     [3]uint64
	offsetCount int
}

// read reads the chunks of a block until one is not valid. The parameter start is the block's offset in the log. at is
// the offset in the block at which the method stopped. ok is true if all chunks were valid.
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

// ahead searches a block for valid chunks after the damage. The search begins at the offset in the parameter at, and
// tries every offset.
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

// shown records the synced offset of a valid chunk after the damage.
func (s *logScan) shown(synced uint64) {
	switch {
	case s.offsetCount == 0 || s.offsetCount < len(s.offsets) && synced > s.offsets[s.offsetCount-1]:
		s.offsets[s.offsetCount] = synced
		s.offsetCount++
	case s.offsetCount == len(s.offsets):
		s.offsets[2] = max(s.offsets[2], synced)
	}
}

// proof returns an offset up to which the log was synced, as far as the chunks after the damage prove it; 0 if they
// prove nothing. The synced offset in a chunk is itself such an offset, since it may be too low but never too high.
//
// Three different offsets prove that the damage was synced, too. One goroutine syncs the log again and again, and each
// sync raises the offset. The chunk with the first offset was written before the end of the sync that led to the second
// offset. So were the bytes before that chunk, including the damage. The sync that led to the third offset began
// afterwards, so it covered these bytes.
func (s *logScan) proof() int64 {
	if s.offsetCount == 0 {
		return 0
	}
	shown := int64(s.offsets[s.offsetCount-1])
	if s.offsetCount == len(s.offsets) {
		return max(shown, s.end+1)
	}
	return shown
}

// chunk returns the length of the chunk at the beginning of b. synced is the offset in the log up to which the log was
// synced, according to the chunk's header. n is 0 if b does not begin with a valid chunk of this log.
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

// logChecksum returns the CRC-32C of b, rotated and shifted as Pebble, RocksDB and LevelDB do.
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
