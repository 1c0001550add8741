package grpc

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/listener"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

const (
	// longMessage is the length in bytes from which a message is received only if there is room for it. A client may send that
	// much, a stream's window, before the library begins to read.
	longMessage = window
	// maxWaiting is the most bytes of shorter messages that are received at once without room for them. They are charged when
	// they are decoded, because a request can wait for room there.
	maxWaiting = 16 << 20
	// messageHeader is the number of bytes before a gRPC message: compressed 1, length 4.
	messageHeader = 5
)

// uploads charges for messages that come in more than one frame, over all connections of a server.
type uploads struct {
	budget  *memory.Budget
	waiting atomic.Int64 // bytes of messages in receipt without a charge; at most maxWaiting
}

// An upload is a request whose message and end of stream did not come in one frame. The mutex of its connection guards it.
type upload struct {
	all   *uploads
	since int64 // tick at which it was charged
	small bool  // a request of the library's own services: any number of messages, together longMessage bytes
	// several says that the stream brings any number of requests, each a message. A message of longMessage bytes or more is
	// received only if there is room for it. Of shorter ones no more than a stream's window comes before the handler asks for
	// them.
	several bool
	charged []*memory.Account // accounts of messages of several that have begun and are not yet decoded; nil for short ones
	header  [messageHeader]byte
	have    int // bytes of header
	length  int // of the message
	left    int // bytes that may still come

	account *memory.Account // nil if nothing is charged, or the request was decoded
	waiting int             // its part of uploads.waiting
	refusal error           // reason of a refusal; the rest of the stream is dropped
}

// begin charges for the upload's message, whose length is known. It fails if there is no room.
func (u *upload) begin(tick int64) error {
	need := int64(u.length)
	if u.length <= rpc.MaxCommitBytes { // the codec refuses longer ones without decoding them
		need *= rpc.MessageFactor
	}
	account := u.all.budget.Open(memory.Request)
	if account.TryGrow(need) {
		u.account, u.since = account, tick
		return nil
	}
	if u.length < longMessage {
		if u.all.waiting.Add(int64(u.length)) <= maxWaiting {
			u.waiting = u.length
			return nil
		}
		u.all.waiting.Add(-int64(u.length))
	}
	return account.Refusal(need)
}

// detachAccount returns the upload's account, or nil if nothing is charged, and ends its receipt. The caller owns the account.
func (u *upload) detachAccount() *memory.Account {
	account := u.account
	if u.waiting > 0 {
		u.all.waiting.Add(-int64(u.waiting))
	}
	u.account, u.waiting = nil, 0
	if len(u.charged) > 0 {
		account, u.charged = u.charged[0], u.charged[1:]
	}
	return account
}

// end releases the upload's charges, unless its request was decoded.
func (u *upload) end() {
	u.detachAccount().Close()
	for _, a := range u.charged {
		a.Close()
	}
	u.charged = nil
}

// next follows the messages of several through the beginning of content. It returns the number of bytes it has consumed.
func (u *upload) next(content []byte) int {
	if u.left > 0 {
		n := min(u.left, len(content))
		u.left -= n
		return n
	}
	k := copy(u.header[u.have:], content)
	if u.have += k; u.have < messageHeader {
		return k
	}
	u.have, u.length = 0, int(binary.BigEndian.Uint32(u.header[1:]))
	u.left = u.length
	var account *memory.Account
	if u.length >= longMessage && u.length <= maxMessage { // the library refuses longer ones
		need := int64(min(u.length, rpc.MaxUploadBytes)) * rpc.UploadFactor
		if account = u.all.budget.Open(memory.Request); !account.TryGrow(need) {
			u.refusal = account.Refusal(need)
			return k
		}
	}
	u.charged = append(u.charged, account)
	return k
}

// behind reports whether a charged upload comes at less than half of the pace it needs to arrive within listener.ReceiveTime.
func (u *upload) behind(tick int64) bool {
	const ticks = int64(listener.ReceiveTime / watchEvery)
	due := int64(u.length) * (tick - u.since - 1) / (2 * ticks)
	return u.account != nil && int64(u.length-u.left) < due
}

// arrived counts n more bytes of the stream's content; payload holds the first of them. It refuses the upload if it is too long
// or there is no room for it.
func (u *upload) arrived(payload []byte, n int, tick int64) {
	if !u.small && u.have < messageHeader {
		k := copy(u.header[u.have:], payload[:min(n, len(payload))])
		n -= k
		if u.have += k; u.have < messageHeader {
			return
		}
		u.length = int(binary.BigEndian.Uint32(u.header[1:]))
		u.left = u.length
		if n < u.length && u.length <= maxMessage { // the library refuses longer ones
			u.refusal = u.begin(tick)
		}
	}
	if u.left -= n; u.left < 0 && u.refusal == nil {
		u.refusal = usererror.MoreThanOneMessage()
	}
}
