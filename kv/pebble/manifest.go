package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// A manifest is a list of version edits. The edits say which table files the store has, and which logs are not in
// tables yet. Each edit is a record of one or more chunks. The chunks lie in blocks of 32 KiB, as in a log, but have a
// simpler form:
//
//	CRC (4 bytes), length of the payload (2), type (1), payload
//
// A remainder of a block that is too short for a chunk is filled with zeros. After a crash, a record that cannot be
// read may be the end of the manifest: an edit that was being written. Or it is damage, and the edits after it would
// be lost. Pebble 2.1.7 does not distinguish the two cases (versionSet.load). But Pebble writes an edit only when the
// one before has been synced. So a record that begins after the damage proves that everything before it was synced.
const (
	manifestHeaderBytes = 7
	manifestFull        = 1 // type of a chunk that is a whole record
	manifestFirst       = 2 // type of the first chunk of a record in several chunks
	manifestLast        = 4 // type of the last chunk of a record in several chunks
)

// Tags of an edit's fields. The first fields of an edit, if it has them, are the comparer's name and the number of the
// oldest log that is not in tables yet.
const (
	editComparer  = 1
	editUnflushed = 2
	// editHeadBytes is how many bytes at the beginning of an edit are kept to be parsed. If the edit has the fields
	// editComparer and editUnflushed, both lie in these bytes.
	editHeadBytes = 64
)

var errManifestDamaged = errors.New("the manifest is damaged")

// checkManifest returns an error if the manifest is damaged before an offset up to which it is known to have been
// synced. end is a note with the number of the manifest and with the offset after its last readable chunk. unflushed is
// the number of the oldest log that is not in tables yet.
func checkManifest(dir string, fs vfs.FS, synced *notes) (end note, unflushed wal.NumWAL, err error) {
	desc, err := pebble.Peek(dir, fs)
	if err != nil || !desc.Exists {
		return note{}, 0, err
	}
	f, err := fs.Open(desc.ManifestFilename)
	if err != nil {
		return note{}, 0, err
	}
	defer f.Close()
	s := manifestScan{}
	if err := s.scan(f); err != nil {
		return note{}, 0, err
	}
	base := fs.PathBase(desc.ManifestFilename)
	if proof := max(s.proof, synced.of(base)); s.end < proof {
		return note{}, 0, fmt.Errorf("%s: %w at offset %d, before offset %d up to which it was synced",
			desc.ManifestFilename, errManifestDamaged, s.end, proof)
	}
	number, _ := manifestNumber(base)
	end = newNote(base, number)
	end.offset = s.end
	return end, s.unflushed, nil
}

// manifestScan is the state and the result of a scan of a manifest.
type manifestScan struct {
	end       int64      // offset after the last readable chunk before any damage
	broken    bool       // whether the chunk at the offset in the field end cannot be read
	proof     int64      // offset of the last record that begins after the damage; 0 if there is none
	unflushed wal.NumWAL // number of the oldest log that is not in tables yet
	head      []byte     // first bytes of the record that is being read
}

func (s *manifestScan) scan(r io.Reader) error {
	block := make([]byte, logBlockBytes)
	for start := int64(0); ; start += logBlockBytes {
		n, err := io.ReadFull(r, block)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		s.block(start, block[:n])
		if n < logBlockBytes {
			return nil
		}
	}
}

// block reads the chunks of a block. The parameter start is the block's offset in the manifest. After a chunk that
// cannot be read, the method tries every offset for the next chunk.
func (s *manifestScan) block(start int64, block []byte) {
	for at := 0; at < len(block); {
		rest := block[at:]
		if len(rest) < manifestHeaderBytes && allZero(rest) && len(block) == logBlockBytes {
			if !s.broken {
				s.end = start + logBlockBytes
			}
			return
		}
		n := manifestChunk(rest)
		switch {
		case n == 0:
			s.broken = true
			at++
			continue
		case s.broken && rest[6] <= manifestFirst:
			s.proof = start + int64(at)
		case !s.broken:
			s.edit(rest[6], rest[manifestHeaderBytes:n])
			s.end = start + int64(at+n)
		}
		at += n
	}
}

// edit adds a chunk to the head of the current version edit. After the edit's last chunk, it parses the head.
func (s *manifestScan) edit(kind byte, payload []byte) {
	if kind <= manifestFirst {
		s.head = s.head[:0]
	}
	s.head = append(s.head, payload[:min(len(payload), editHeadBytes-len(s.head))]...)
	if kind != manifestFull && kind != manifestLast {
		return
	}
	b := s.head
	tag, b := field(b)
	if tag == editComparer {
		n, rest := field(b)
		tag, b = field(rest[min(n, uint64(len(rest))):])
	}
	if tag == editUnflushed {
		number, _ := field(b)
		s.unflushed = wal.NumWAL(number)
	}
}

func field(b []byte) (uint64, []byte) {
	v, n := binary.Uvarint(b)
	return v, b[max(n, 0):]
}

// manifestChunk returns the length of the chunk at the beginning of b; 0 if that is not a valid chunk.
func manifestChunk(b []byte) int {
	if len(b) < manifestHeaderBytes || b[6] < manifestFull || b[6] > manifestLast {
		return 0
	}
	n := manifestHeaderBytes + int(binary.LittleEndian.Uint16(b[4:]))
	if n > len(b) || logChecksum(b[6:n]) != binary.LittleEndian.Uint32(b) {
		return 0
	}
	return n
}
