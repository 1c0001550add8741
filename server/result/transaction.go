package result

import (
	"encoding/binary"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// A Transaction holds the part of a result's metadata that describes the request's transaction.
type Transaction struct {
	ID       []byte         // id of a transaction that the request began; nil if it began none
	At       mvcc.Timestamp // timestamp of the snapshot; 0 in a read-write transaction
	ReturnAt bool           // the client asks for the timestamp, so the metadata has it
	Sent     bool           // a message with the metadata has been sent
}

// Proto returns the Transaction message for the metadata, or nil if the metadata has none.
func (t *Transaction) Proto() *spannerpb.Transaction {
	if t.ID == nil && !t.ReturnAt {
		return nil
	}
	p := &spannerpb.Transaction{Id: t.ID}
	if t.ReturnAt {
		p.ReadTimestamp = timestamppb.New(t.At.Time())
	}
	return p
}

// appendTo appends the field ResultSetMetadata.transaction, if the metadata has it.
func (t *Transaction) appendTo(dst []byte) []byte {
	if t.ID == nil && !t.ReturnAt {
		return dst
	}
	var room [64]byte
	body := room[:0]
	if t.ID != nil {
		body = protowire.AppendBytes(append(body, tagTransactionID), t.ID)
	}
	if t.ReturnAt {
		var stamp [32]byte
		body = protowire.AppendBytes(append(body, tagTransactionReadTimestamp), appendTimestamp(stamp[:0], t.At))
	}
	return protowire.AppendBytes(append(dst, tagMetadataTransaction), body)
}

const (
	tagTransactionID            = 1<<3 | 2
	tagTransactionReadTimestamp = 2<<3 | 2
	tagTimestampSeconds         = 1 << 3
	tagTimestampNanos           = 2 << 3
)

// appendTimestamp appends the body of a google.protobuf.Timestamp.
func appendTimestamp(dst []byte, at mvcc.Timestamp) []byte {
	t := at.Time()
	dst = binary.AppendUvarint(append(dst, tagTimestampSeconds), uint64(t.Unix()))
	return binary.AppendUvarint(append(dst, tagTimestampNanos), uint64(t.Nanosecond()))
}
