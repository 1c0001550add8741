package listing

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"sort"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// maxPage is how many items one page of a list has at most:
// https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#listsessionsrequest.
const maxPage = 1000

// A PageRequest is a request for one page of a list.
type PageRequest interface {
	proto.Message
	GetPageSize() int32
	GetPageToken() string
}

// Page returns the page of list that req asks for, and the token of the next page. After the last page the token is "".
// list must be sorted by name.
func Page[T any](req PageRequest, list []T, name func(T) string) ([]T, string, error) {
	after, size, err := Bounds(req)
	if err != nil {
		return nil, "", err
	}
	if after != "" {
		list = list[sort.Search(len(list), func(i int) bool { return name(list[i]) > after }):]
	}
	if len(list) <= size {
		return list, "", nil
	}
	return list[:size], NextPage(req, name(list[size-1])), nil
}

// Bounds returns the bounds of the page that req asks for. after is the name of the last item of the previous page, ""
// for the first page. size is the maximum number of items on the page.
func Bounds(req PageRequest) (after string, size int, err error) {
	size = int(req.GetPageSize())
	if size < 0 {
		return "", 0, usererror.InvalidPageSize(req.GetPageSize())
	}
	if size == 0 || size > maxPage {
		size = maxPage
	}
	if token := req.GetPageToken(); token != "" {
		var ok bool
		if after, ok = openPageToken(req, token); !ok {
			return "", 0, usererror.InvalidPageToken()
		}
	}
	return after, size, nil
}

// checksumSize is the length in bytes of a page token's checksum.
const checksumSize = 8

// A page token is the base64 encoding of
//
//	checksum (8 bytes) | name of the last item of the previous page
//
// The checksum has no secret key, so a token stays valid after a restart. A client that forges a token sees only what
// it could list anyway.

// NextPage returns the token of the page that begins after an item. The parameter last is the name of the item.
func NextPage(req PageRequest, last string) string {
	token := binary.BigEndian.AppendUint64(nil, pageChecksum(req, last))
	return base64.RawURLEncoding.EncodeToString(append(token, last...))
}

// openPageToken returns the item name in a token. ok is false if the token was not made for a request that equals req
// in all fields but page_size and page_token.
func openPageToken(req PageRequest, token string) (last string, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(data) < checksumSize {
		return "", false
	}
	last = string(data[checksumSize:])
	return last, binary.BigEndian.Uint64(data) == pageChecksum(req, last)
}

// pageChecksum returns a checksum of the item name and of the request without page_size and page_token, because these
// two may differ from page to page.
func pageChecksum(req PageRequest, last string) uint64 {
	m := proto.Clone(req)
	r := m.ProtoReflect()
	for _, field := range []protoreflect.Name{"page_size", "page_token"} {
		r.Clear(r.Descriptor().Fields().ByName(field))
	}
	h := fnv.New64a()
	h.Write([]byte(r.Descriptor().FullName()))
	if data, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m); err == nil {
		h.Write(data)
	}
	h.Write([]byte{0})
	h.Write([]byte(last))
	return h.Sum64()
}
