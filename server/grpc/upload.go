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
	// longMessage is the length in bytes from which a message is received only if there is room for it. A client may send as much, a
	// stream's window, before the library begins to read.
	longMessage = window
	// maxWaiting is how many bytes of shorter messages are received at once although there is no room for them. They are charged when they are decoded,
	// where a request can wait for room.
	maxWaiting = 16 << 20
	// messageHeader are the bytes before a gRPC message: compressed 1, length 4.
	messageHeader = 5
)

// uploads charge the messages of a server that come in more than one frame.
type uploads struct {
	budget  *memory.Budget
	waiting atomic.Int64 // bytes of messages that are received without a charge; at most maxWaiting
}

// An upload is a request whose message was not complete in one frame with the end of its stream. The mutex of its connection guards it.
type upload struct {
	all   *uploads
	since int64 // the tick of its connection at which it was charged
	small bool  // a request of the library's own services: any number of messages, longMessage bytes in all
	// several says that any number of requests come, each a message. Those of longMessage bytes or more are received only if there is room for them; of
	// others no more come than a stream's window until they are asked for.
	several bool
	charged []*memory.Account // of messages of several that have begun and were not decoded; nil for short ones
	header  [messageHeader]byte
	have    int // bytes of header
	length  int // of the message
	left    int // bytes that may still come

	account *memory.Account // nil if nothing is charged, or its request was decoded
	waiting int             // bytes of uploads.waiting
	refusal error           // why the request is refused; the rest of its stream is dropped
}

// begin charges for the upload's message, whose length is known. Its error says that there is no room.
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

// take hands over what the upload was charged, nil if that is nothing. It is no longer in receipt.
func (u *upload) take() *memory.Account {
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

// end gives back what the upload was charged, unless its request was decoded.
func (u *upload) end() {
	u.take().Close()
	for _, a := range u.charged {
		a.Close()
	}
	u.charged = nil
}

// next follows the messages of several through the front of a stream's content. It returns how many bytes it has looked at.
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

// behind says whether the upload holds a charge and comes at less than half of the pace at which it would be here within listener.ReceiveTime.
func (u *upload) behind(tick int64) bool {
	const ticks = int64(listener.ReceiveTime / watchEvery)
	due := int64(u.length) * (tick - u.since - 1) / (2 * ticks)
	return u.account != nil && int64(u.length-u.left) < due
}

// arrived notes n more bytes of the stream's content, the first of which payload shows. Bytes that are more than the upload may have, or for which
// there is no room, refuse it.
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
