package changestream

import (
	"encoding/binary"
	"math/bits"
)

// A record is encoded as a google.protobuf.Value: a list with one struct. The struct has three lists, two of which are
// empty and one of which has one struct. Structs are encoded as lists. The constants are the tags (field number and
// wire type) of the encoding, and the bytes of an element that is an empty list.
const (
	elementTag = 1<<3 | 2 // field of ListValue.values; a length and a Value follow
	textTag    = 3<<3 | 2 // field of a Value; a length and bytes follow
	boolTag    = 4 << 3   // field of a Value; 0 or 1 follows
	listTag    = 6<<3 | 2 // field of a Value; a length and a ListValue follow

	emptyList = "\x0a\x02\x32\x00"
	boolSize  = 4 // the number of bytes of a list element that is a BOOL
)

// headSize returns the number of bytes of a tag followed by the length n.
func headSize(n int) int { return 1 + (bits.Len64(uint64(n)|1)+6)/7 }

func appendHead(dst []byte, tag byte, n int) []byte {
	return binary.AppendUvarint(append(dst, tag), uint64(n))
}

// valueSize returns the number of bytes of a list element that is a text or a list with n bytes of contents.
func valueSize(n int) int {
	n += headSize(n)
	return headSize(n) + n
}

// appendTextHead appends the head of a list element that is a text of n bytes: the tags and lengths before the text.
// The caller appends the text.
func appendTextHead(dst []byte, n int) []byte {
	return appendHead(appendHead(dst, elementTag, headSize(n)+n), textTag, n)
}

// appendListHead appends the head of a list element that is a list of n bytes: the tags and lengths before its
// elements. The caller appends the elements.
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

// The three lists of a record, by their indexes in the record's struct.
const (
	dataChange = iota
	heartbeat
	childPartitions
	kindsOfRecords
)

// maxRecordHead is the maximum number of bytes that appendRecordHead and appendRecordEnd append together: the heads of
// four values with two lengths each, and two empty lists.
const maxRecordHead = 4*2*(1+binary.MaxVarintLen64) + (kindsOfRecords-1)*len(emptyList)

// appendRecordHead appends the head of a record. kind says which of the record's three lists has an element. This
// element is a struct whose fields take n bytes. The caller appends the fields and then calls appendRecordEnd.
func appendRecordHead(dst []byte, kind, n int) []byte {
	list := valueSize(n)                                         // bytes of the list with the struct
	lists := valueSize(list) + (kindsOfRecords-1)*len(emptyList) // bytes of the three lists
	outer := valueSize(lists)                                    // bytes of the outer list, which has one struct
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
