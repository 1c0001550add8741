package result

import (
	"encoding/binary"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A Position is a place in a result: before a piece of a value of a row. row, value and piece are counted from 0. Only
// a value that was cut (see chunk.go) has several pieces.
type Position struct {
	row          uint64
	value, piece uint32
}

// A Resumption is the content of a resume token. A request with the token continues at the position in the field from,
// at the same timestamp.
type Resumption struct {
	request uint64         // fingerprint of the request
	At      mvcc.Timestamp // timestamp of the snapshot; 0 in a read-write transaction
	live    bool           // the token belongs to a change stream, which has no snapshot
	from    Position
}

// Snapshot returns r if its stream reads a snapshot. It returns nil for a change stream, or if r is nil.
func (r *Resumption) Snapshot() *Resumption {
	if r == nil || r.live {
		return nil
	}
	return r
}

// Live returns the position where a change stream continues; it is zero if r is nil.
func (r *Resumption) Live() changestream.Position {
	p := r.Position()
	return changestream.Position{Timestamp: mvcc.Timestamp(p.row), Sequence: p.value}
}

// Position returns the position where the stream continues. If r is nil, because the request has no token, that is the
// beginning.
func (r *Resumption) Position() Position {
	if r == nil {
		return Position{}
	}
	return r.from
}

// Versions and sizes of resume tokens. Tokens are opaque to clients and have these fields, with their lengths in bytes:
//
//	version 1 | request 8 | at 8 | row uvarint | value uvarint | piece uvarint | checksum 8
//
// Tokens of a change stream have another version; in them, row is the timestamp of a changestream.Position and value is
// its sequence.
//
// The key of the checksum is the server's secret, so a server accepts only tokens that it has made.
const (
	resumeVersion  = 1
	liveVersion    = 2
	resumeHead     = 1 + 8 + 8
	maxResumeToken = resumeHead + 3*binary.MaxVarintLen64 + token.ChecksumSize
)

// appendToken appends the token of r.
func (r Resumption) appendToken(dst []byte, k token.Key) []byte {
	start := len(dst)
	version := byte(resumeVersion)
	if r.live {
		version = liveVersion
	}
	dst = append(dst, version)
	dst = binary.BigEndian.AppendUint64(dst, r.request)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.At))
	dst = binary.AppendUvarint(dst, r.from.row)
	dst = binary.AppendUvarint(dst, uint64(r.from.value))
	dst = binary.AppendUvarint(dst, uint64(r.from.piece))
	return k.Seal(dst, start)
}

// ParseToken decodes a resume token and checks it. request is the fingerprint of the request that carries the token.
func ParseToken(k token.Key, data []byte, request uint64) (*Resumption, error) {
	body, ok := k.Open(data)
	if !ok || len(body) < resumeHead || body[0] != resumeVersion && body[0] != liveVersion {
		return nil, usererror.InvalidResumeToken()
	}
	r := &Resumption{
		request: binary.BigEndian.Uint64(body[1:]),
		At:      mvcc.Timestamp(binary.BigEndian.Uint64(body[9:])),
		live:    body[0] == liveVersion,
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
	r.from = Position{row: counts[0], value: uint32(counts[1]), piece: uint32(counts[2])}
	return r, nil
}
