package changestream

import (
	"encoding/binary"
	"math/bits"
)

// A record is a google.protobuf.Value: a list of one struct of three lists, of which one has one element. Structs are lists, too. These are the
// tags (field number and wire type) that it is made of, and the element that has an empty list.
const (
	elementTag = 1<<3 | 2 // of ListValue.values: length, Value
	textTag    = 3<<3 | 2 // of a Value: length, bytes
	boolTag    = 4 << 3   // of a Value: 0 or 1
	listTag    = 6<<3 | 2 // of a Value: length, ListValue

	emptyList = "\x0a\x02\x32\x00"
	boolSize  = 4 // of an element that is a BOOL
)

// headSize is how many bytes a tag and a length take.
func headSize(n int) int { return 1 + (bits.Len64(uint64(n)|1)+6)/7 }

func appendHead(dst []byte, tag byte, n int) []byte {
	return binary.AppendUvarint(append(dst, tag), uint64(n))
}

// valueSize is how many bytes a text or a list of n bytes takes as an element of a list.
func valueSize(n int) int {
	n += headSize(n)
	return headSize(n) + n
}

// appendTextHead begins an element that is a text of n bytes.
func appendTextHead(dst []byte, n int) []byte {
	return appendHead(appendHead(dst, elementTag, headSize(n)+n), textTag, n)
}

// appendListHead begins an element that is a list of n bytes.
func appendListHead(dst []byte, n int) []byte {
	return appendHead(appendHead(dst, elementTag, headSize(n)+n), listTag, n)
}

func appendText(dst []byte, s string) []byte { return append(appendTextHead(dst, len(s)), s...) }

func appendBool(dst []byte, b bool) []byte {
	dst = append(dst, elementTag, 2, boolTag, 0)
	if b {
		dst[len(dst)-1] = 1
	}
	return dst
}

// The three lists of a record, in order.
const (
	dataChange = iota
	heartbeat
	childPartitions
	kindsOfRecords
)

// maxRecordHead is what appendRecordHead and appendRecordEnd append at most: four heads of values, each of two lengths, and two empty lists.
const maxRecordHead = 4*2*(1+binary.MaxVarintLen64) + (kindsOfRecords-1)*len(emptyList)

// appendRecordHead begins a record whose one struct, in the list number kind, has fields of n bytes. appendRecordEnd must end it.
func appendRecordHead(dst []byte, kind, n int) []byte {
	list := valueSize(n)                                         // the list that has the struct
	lists := valueSize(list) + (kindsOfRecords-1)*len(emptyList) // the three lists
	outer := valueSize(lists)                                    // the list that has the struct of them
	dst = appendListHead(appendHead(dst, listTag, outer), lists)
	for range kind {
		dst = append(dst, emptyList...)
	}
	return appendListHead(appendListHead(dst, list), n)
}

func appendRecordEnd(dst []byte, kind int) []byte {
	for range kindsOfRecords - 1 - kind {
		dst = append(dst, emptyList...)
	}
	return dst
}
