package server

import (
	"encoding/binary"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A position is a place in the values of a result: before piece number piece of
// value number value of row number row, all from 0. A value has several pieces
// only if it was cut (see chunk.go).
type position struct {
	row          uint64
	value, piece uint32
}

// A resumption is what a resume token says: the same request, at the same
// timestamp, continues from a position.
type resumption struct {
	request uint64         // fingerprint of the request
	at      mvcc.Timestamp // of the snapshot; 0 in a read-write transaction
	from    position
}

// position is where the stream continues; a request without a token begins at the start.
func (r *resumption) position() position {
	if r == nil {
		return position{}
	}
	return r.from
}

// Resume tokens are opaque to clients:
//
//	version 1 | request 8 | at 8 | row uvarint | value uvarint | piece uvarint | checksum 8
//
// The checksum is keyed by the server's seed, so that nothing but what this
// server gave out is believed.
const (
	resumeVersion  = 1
	resumeHead     = 1 + 8 + 8
	maxResumeToken = resumeHead + 3*binary.MaxVarintLen64 + checksumSize
)

// appendResumeToken appends the token of r.
func (k tokenKey) appendResumeToken(dst []byte, r resumption) []byte {
	start := len(dst)
	dst = append(dst, resumeVersion)
	dst = binary.BigEndian.AppendUint64(dst, r.request)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.at))
	dst = binary.AppendUvarint(dst, r.from.row)
	dst = binary.AppendUvarint(dst, uint64(r.from.value))
	dst = binary.AppendUvarint(dst, uint64(r.from.piece))
	return k.seal(dst, start)
}

// resumption reads a token; request is the fingerprint of the request that carries it.
func (k tokenKey) resumption(token []byte, request uint64) (*resumption, error) {
	body, ok := k.open(token)
	if !ok || len(body) < resumeHead || body[0] != resumeVersion {
		return nil, usererror.InvalidResumeToken()
	}
	r := &resumption{
		request: binary.BigEndian.Uint64(body[1:]),
		at:      mvcc.Timestamp(binary.BigEndian.Uint64(body[9:])),
	}
	var counts [3]uint64
	rest := body[resumeHead:]
	for i := range counts {
		n := 0
		if counts[i], n = binary.Uvarint(rest); n <= 0 {
			return nil, usererror.InvalidResumeToken()
		}
		rest = rest[n:]
	}
	if r.request != request {
		return nil, usererror.ForeignResumeToken()
	}
	r.from = position{row: counts[0], value: uint32(counts[1]), piece: uint32(counts[2])}
	return r, nil
}
