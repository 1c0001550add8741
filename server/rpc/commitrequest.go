package rpc

import (
	"slices"
	"sync"
	"unicode/utf8"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/protovalue"
)

// maxDecoded is the length in bytes of the longest CommitRequest that a commitDecoder decodes. The decoder copies the
// rows. For a longer message, the charge of MessageFactor times its length would not cover both this copy and the
// memory of the commit.
const maxDecoded = 4 << 20

// unmarshal decodes a message as proto.Unmarshal does. For a long CommitRequest it uses a commitDecoder, which
// allocates the values of all mutations in a few arrays. That takes a third of the time that proto.Unmarshal takes.
func unmarshal(data []byte, m proto.Message) error {
	if c, ok := m.(*spannerpb.CommitRequest); ok && len(data) > smallRequest && len(data) <= maxDecoded {
		d := decoders.Get().(*commitDecoder)
		ok := d.commit(data, c)
		d.release()
		if ok {
			return nil
		}
	}
	return proto.Unmarshal(data, m) // also returns the error, if the message is malformed
}

// Field numbers (https://github.com/googleapis/googleapis/blob/master/google/spanner/v1) of CommitRequest, Mutation,
// Mutation.Write, and of google.protobuf.ListValue and Value.
const (
	commitMutations = 4

	mutationInsert, mutationUpdate, mutationInsertOrUpdate, mutationReplace = 1, 2, 3, 4

	writeTable, writeColumns, writeValues = 1, 2, 3

	listValues, valueList = 1, 6
)

// A commitDecoder decodes a CommitRequest. It collects the rows of all mutations as the values of one
// google.protobuf.ListValue, each of which is a list, so that package protovalue decodes them together.
type commitDecoder struct {
	rest   []byte // the encoded fields of the message other than mutations
	rows   []byte // the encoded rows of all mutations, as values of a ListValue
	writes []decodedWrite
}

// decodedWrite is a decoded Mutation.Write that does not have its rows yet. rows is their number.
type decodedWrite struct {
	write *spannerpb.Mutation_Write
	rows  int
}

var decoders = sync.Pool{New: func() any { return new(commitDecoder) }}

// maxWrites is the capacity of commitDecoder.writes above which a decoder is not kept for reuse.
const maxWrites = 64 << 10

func (d *commitDecoder) release() {
	if cap(d.writes) > maxWrites {
		return
	}
	clear(d.writes)
	d.rest, d.rows, d.writes = d.rest[:0], d.rows[:0], d.writes[:0]
	decoders.Put(d)
}

// commit decodes data into m. It returns false if the message is malformed or has fields that the decoder does not
// know; then package proto must decode it.
func (d *commitDecoder) commit(data []byte, m *spannerpb.CommitRequest) bool {
	// Rows of a few bytes each need more room than this; Go's append then grows the slice.
	d.rows = slices.Grow(d.rows, len(data)+len(data)/8)
	var mutations []*spannerpb.Mutation
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		if number != commitMutations {
			size := protowire.ConsumeFieldValue(number, kind, data[n:])
			if size < 0 {
				return false
			}
			d.rest, data = append(d.rest, data[:n+size]...), data[n+size:]
			continue
		}
		body, size := protowire.ConsumeBytes(data[n:])
		if kind != protowire.BytesType || size < 0 {
			return false
		}
		mutation, ok := d.mutation(body)
		if !ok {
			return false
		}
		mutations, data = append(mutations, mutation), data[n+size:]
	}
	if !d.fill() || proto.Unmarshal(d.rest, m) != nil {
		return false
	}
	m.Mutations = mutations
	return true
}

// mutation decodes a Mutation, except for its rows.
func (d *commitDecoder) mutation(data []byte) (*spannerpb.Mutation, bool) {
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 || kind != protowire.BytesType || number < mutationInsert || number > mutationReplace {
		m := new(spannerpb.Mutation)
		return m, proto.Unmarshal(data, m) == nil
	}
	body, size := protowire.ConsumeBytes(data[n:])
	if size < 0 || n+size != len(data) {
		return nil, false
	}
	w, ok := d.write(body)
	m := new(spannerpb.Mutation)
	switch number {
	case mutationInsert:
		m.Operation = &spannerpb.Mutation_Insert{Insert: w}
	case mutationUpdate:
		m.Operation = &spannerpb.Mutation_Update{Update: w}
	case mutationInsertOrUpdate:
		m.Operation = &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: w}
	default:
		m.Operation = &spannerpb.Mutation_Replace{Replace: w}
	}
	return m, ok
}

// write decodes a Mutation.Write, except for its rows. It adds these to d.rows, which the method fill decodes later.
func (d *commitDecoder) write(data []byte) (*spannerpb.Mutation_Write, bool) {
	w, rows := new(spannerpb.Mutation_Write), 0
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 || kind != protowire.BytesType {
			return nil, false
		}
		body, size := protowire.ConsumeBytes(data[n:])
		if size < 0 {
			return nil, false
		}
		data = data[n+size:]
		switch number {
		case writeTable:
			if !utf8.Valid(body) {
				return nil, false
			}
			w.Table = string(body)
		case writeColumns:
			if !utf8.Valid(body) {
				return nil, false
			}
			w.Columns = append(w.Columns, string(body))
		case writeValues:
			rows++
			d.rows = protowire.AppendTag(d.rows, listValues, protowire.BytesType)
			d.rows = protowire.AppendVarint(d.rows, uint64(1+protowire.SizeBytes(len(body))))
			d.rows = protowire.AppendTag(d.rows, valueList, protowire.BytesType)
			d.rows = protowire.AppendBytes(d.rows, body)
		default:
			return nil, false
		}
	}
	d.writes = append(d.writes, decodedWrite{w, rows})
	return w, true
}

// fill decodes the collected rows and gives each write its rows.
func (d *commitDecoder) fill() bool {
	values, _, ok := protovalue.Decode(d.rows, listValues)
	if !ok {
		var all structpb.ListValue
		if proto.Unmarshal(d.rows, &all) != nil {
			return false
		}
		values = all.Values
	}
	lists := make([]*structpb.ListValue, len(values))
	for i, v := range values {
		lists[i] = v.GetListValue()
	}
	for _, w := range d.writes {
		if w.rows > 0 {
			w.write.Values, lists = lists[:w.rows:w.rows], lists[w.rows:]
		}
	}
	return true
}
