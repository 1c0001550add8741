package changestream

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// A partition token is base64 (RFC 4648, for URLs, without padding) of these fields. The numbers are their sizes in
// bytes:
//
//	version 1 | space 4 | stream 8 | partition 8 | checksum 12
//
// The key of the checksum is a secret of the store. So a log accepts only tokens that were given out for its database,
// including those from before a restart. A token does not tell whether the store still has its partition.
const (
	tokenVersion  = 1
	tokenBody     = 1 + 4 + 8 + 8
	tokenChecksum = 12
)

var tokenCoding = base64.RawURLEncoding.Strict()

func (l *Log) tokenOf(s schema.ChangeStreamID, p PartitionID) string {
	body := binary.BigEndian.AppendUint32([]byte{tokenVersion}, uint32(l.cfg.Space))
	body = binary.BigEndian.AppendUint64(body, uint64(s))
	body = binary.BigEndian.AppendUint64(body, uint64(p))
	return tokenCoding.EncodeToString(append(body, l.checksum(body)...))
}

func (l *Log) checksum(body []byte) []byte {
	h := hmac.New(sha256.New, l.cfg.Secret[:])
	h.Write([]byte("changestream/"))
	h.Write(body)
	return h.Sum(nil)[:tokenChecksum]
}

// parseToken returns the stream and the partition that a token names. ok is false if the token is not one of this
// database.
func (l *Log) parseToken(token string) (s schema.ChangeStreamID, p PartitionID, ok bool) {
	data, err := tokenCoding.DecodeString(token)
	// DecodeString ignores line ends, so the data is encoded again and compared with the token.
	if err != nil || len(data) != tokenBody+tokenChecksum || data[0] != tokenVersion || tokenCoding.EncodeToString(data) != token {
		return 0, 0, false
	}
	body := data[:tokenBody]
	if subtle.ConstantTimeCompare(l.checksum(body), data[tokenBody:]) == 0 || mvcc.Space(binary.BigEndian.Uint32(body[1:])) != l.cfg.Space {
		return 0, 0, false
	}
	return schema.ChangeStreamID(binary.BigEndian.Uint64(body[5:])), PartitionID(binary.BigEndian.Uint64(body[13:])), true
}
