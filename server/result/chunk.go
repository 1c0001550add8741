package result

import (
	"encoding/binary"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Tags of those kinds of google.protobuf.Value that can be cut. Values of other kinds are small.
const (
	tagValueString = 3<<3 | 2
	tagValueList   = 6<<3 | 2
)

// A cut inside an element of a list puts at least about minCut bytes of the element before the cut. So every cut makes
// progress. elementHead is how many bytes an element's tag and length have at most.
const (
	minCut      = 64
	elementHead = 6
	// emptyElement is the encoded size in bytes of an element that is an empty string or list.
	emptyElement = 4
)

// cut splits body, the encoding of a google.protobuf.Value, if it is longer than limit. head has limit bytes or
// slightly more. tail is the end of body. cut writes tail's tag and length over the bytes of body before it, so that a
// long value is not copied for each piece. A client that merges head and tail as PartialResultSet.chunked_value says
// gets the value again. The position of the cut depends only on body and limit, so a resumed stream cuts at the same
// positions as the broken one. ok is false if body is not longer than limit or cannot be cut.
//
//	"abcdef"           → "abc"  + "def"
//	["ab", "cd", "ef"] → ["ab"] + ["", "cd", "ef"]      the client joins "ab" and "" to "ab"
//	[["ab", "cdef"]]   → [["ab", "cd"]] + [["ef"]]
func cut(body []byte, limit int) (head, tail []byte, ok bool) {
	if limit <= 0 || len(body) <= limit || len(body) < 2 {
		return nil, nil, false
	}
	payload, n := protowire.ConsumeBytes(body[1:])
	if n < 0 {
		return nil, nil, false
	}
	switch body[0] {
	case tagValueString:
		at := runeStart(payload, limit)
		if at == 0 || at == len(payload) {
			return nil, nil, false
		}
		head = protowire.AppendBytes([]byte{tagValueString}, payload[:at])
		return head, prepend(body, len(payload)-at, tagValueString), true
	case tagValueList:
		return cutList(body, payload, limit)
	}
	return nil, nil, false
}

// runeStart returns the last offset up to at where a UTF-8 character of s begins.
func runeStart(s []byte, at int) int {
	if at >= len(s) {
		return len(s)
	}
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// cutList splits a list. elements are its encoded elements, which are the end of body. The client merges the last
// element of head with the first element of tail if both are strings or lists. So if the cut is between two elements
// and the one before it is a string or a list, tail begins with an extra empty string or list.
func cutList(body, elements []byte, limit int) (head, tail []byte, ok bool) {
	var previous byte // kind of the previous element
	for at := 0; at < len(elements); {
		element, n := protowire.ConsumeBytes(elements[at+1:])
		if n < 0 || len(element) == 0 {
			return nil, nil, false
		}
		end := at + 1 + n
		if end <= limit {
			previous, at = element[0], end
			continue
		}
		if at < minCut || (limit-at >= minCut && len(element) > limit) {
			if first, rest, ok := cut(element, limit-at-elementHead); ok {
				head = appendElement(elements[:at:at], first)
				tail = prepend(elements[:end], len(rest), tagListValue)
				return appendList(head), prepend(body, len(tail)+len(elements)-end, tagValueList), true
			}
		}
		if at == 0 {
			return nil, nil, false
		}
		head, n = appendList(elements[:at]), len(elements)-at
		if previous == tagValueString || previous == tagValueList {
			n += copy(elements[at-emptyElement:], []byte{tagListValue, 2, previous, 0})
		}
		return head, prepend(body, n, tagValueList), true
	}
	return nil, nil, false
}

// prepend writes tag and length before the last n bytes of b, over the bytes that are there. It returns the slice of
// tag, length and the n bytes.
func prepend(b []byte, n int, tag byte) []byte {
	at := len(b) - n - protowire.SizeVarint(uint64(n)) - 1
	b[at] = tag
	binary.PutUvarint(b[at+1:], uint64(n))
	return b[at:]
}

func appendList(elements []byte) []byte {
	dst := append(make([]byte, 0, len(elements)+6), tagValueList)
	return protowire.AppendBytes(dst, elements)
}

func appendElement(dst, body []byte) []byte {
	return protowire.AppendBytes(append(dst, tagListValue), body)
}
