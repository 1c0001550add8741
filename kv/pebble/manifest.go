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

// A manifest is a list of version edits: which table files the store has, and which logs are not in them yet. Each edit is a record, in one chunk
// or in more. Chunks lie in blocks of 32 KiB like those of a log, and are simpler:
//
//	CRC (4 bytes), length of the payload (2), type (1), payload
//
// A block's rest that is too short for a chunk is zeros. After a crash, a record that cannot be read may be the end: an edit that was
// on its way. Or it is damage, and what follows would be lost: Pebble 2.1.7 takes one for the other (versionSet.load). But it
// writes an edit when the one before has been synced, so a record that begins behind the damage proves that all before it was synced.
const (
	manifestHeaderBytes = 7
	manifestFull        = 1
	manifestFirst       = 2 // of a record in more than one chunk
	manifestLast        = 4
)

// Tags of an edit's fields. The comparer's name and the least log that is not in tables come first, if they are there at all.
const (
	editComparer  = 1
	editUnflushed = 2
	// editHeadBytes of an edit hold both.
	editHeadBytes = 64
)

var errManifestDamaged = errors.New("the manifest is damaged")

// checkManifest refuses a manifest that is damaged before the last offset that is known to have been synced. It returns a note of its end and the least
// number of a log that is not in tables yet.
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

// manifestScan is what is found in a manifest.
type manifestScan struct {
	end       int64 // of the last readable chunk
	broken    bool  // at end
	proof     int64 // where a record begins behind the damage; 0 if none does
	unflushed wal.NumWAL
	head      []byte // of the record that is read
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

// block reads the chunks of a block. Where one is not sound the next may begin anywhere.
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

// edit reads the head of a version edit when its last chunk has come.
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

// manifestChunk is the length of the chunk that b begins with; 0 if it is not a sound one.
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
