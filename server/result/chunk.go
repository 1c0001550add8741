package result

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Tags of the kinds of google.protobuf.Value that can be cut. Values of other kinds are small.
const (
	tagValueString = 3<<3 | 2
	tagValueList   = 6<<3 | 2
)

// A list is cut inside an element only if about minCut bytes or more of the element come before the cut, so
// that every cut makes progress. elementHead is the most bytes that tag and length of an element take.
const (
	minCut      = 64
	elementHead = 6
)

// cut splits a Value body that is longer than max into head, of max bytes or
// slightly more, and tail. A client that merges them as
// PartialResultSet.chunked_value says gets body again. Where it cuts depends on body and max alone,
// so a resumed stream cuts where the broken one did. ok is false if body cannot be cut.
//
//	"abcdef"           → "abc"  + "def"
//	["ab", "cd", "ef"] → ["ab"] + ["", "cd", "ef"]      the seam joins "ab" and ""
//	[["ab", "cdef"]]   → [["ab", "cd"]] + [["ef"]]
func cut(body []byte, max int) (head, tail []byte, ok bool) {
	if max <= 0 || len(body) <= max || len(body) < 2 {
		return nil, nil, false
	}
	payload, n := protowire.ConsumeBytes(body[1:])
	if n < 0 {
		return nil, nil, false
	}
	switch body[0] {
	case tagValueString:
		at := runeStart(payload, max)
		return appendString(nil, payload[:at]), appendString(nil, payload[at:]), at > 0 && at < len(payload)
	case tagValueList:
		return cutList(payload, max)
	}
	return nil, nil, false
}

// runeStart is the last offset, not after at, at which a character of s begins.
func runeStart(s []byte, at int) int {
	if at >= len(s) {
		return len(s)
	}
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// cutList splits the elements of a ListValue. The client merges the last element of head with the first of tail if they are
// strings or lists. So if the cut falls between two such elements, tail begins with an empty string or list.
func cutList(elements []byte, max int) (head, tail []byte, ok bool) {
	var previous byte // kind of the element before
	for at := 0; at < len(elements); {
		element, n := protowire.ConsumeBytes(elements[at+1:])
		if n < 0 || len(element) == 0 {
			return nil, nil, false
		}
		end := at + 1 + n
		if end <= max {
			previous, at = element[0], end
			continue
		}
		if at < minCut || (max-at >= minCut && len(element) > max) {
			if first, rest, ok := cut(element, max-at-elementHead); ok {
				head = appendElement(elements[:at:at], first)
				tail = append(appendElement(nil, rest), elements[end:]...)
				return appendList(head), appendList(tail), true
			}
		}
		if at == 0 {
			return nil, nil, false
		}
		switch previous {
		case tagValueString:
			tail = appendElement(nil, []byte{tagValueString, 0})
		case tagValueList:
			tail = appendElement(nil, []byte{tagValueList, 0})
		}
		return appendList(elements[:at]), appendList(append(tail, elements[at:]...)), true
	}
	return nil, nil, false
}

func appendString(dst, s []byte) []byte {
	return protowire.AppendBytes(append(dst, tagValueString), s)
}

func appendList(elements []byte) []byte {
	dst := append(make([]byte, 0, len(elements)+6), tagValueList)
	return protowire.AppendBytes(dst, elements)
}

func appendElement(dst, body []byte) []byte {
	return protowire.AppendBytes(append(dst, tagListValue), body)
}
