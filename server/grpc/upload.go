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
	// longMessage is the length in bytes from which a message is received only if the budget has memory for it. It
	// equals a stream's window, so a client can send shorter messages before the library begins to read.
	longMessage = window
	// maxWaiting is the maximum number of bytes of shorter messages that arrive at the same time without a charge. The
	// codec charges for them when it decodes them, because at that point a request can wait for memory.
	maxWaiting = 16 << 20
	// messageHeader is the number of bytes before a gRPC message: a flag "compressed" of 1 byte, and the length of 4
	// bytes.
	messageHeader = 5
)

// uploads charges for messages that come in more than one frame. All connections of a server share it.
type uploads struct {
	budget  *memory.Budget
	waiting atomic.Int64 // bytes of messages that are arriving without a charge; at most maxWaiting
}

// An upload is a request whose message and end of stream did not come in one frame. It is guarded by inbound.mu.
type upload struct {
	all   *uploads
	since int64 // tick at which the message was charged
	small bool  // a request of gRPC's own services: any number of messages, which together have at most longMessage bytes
	// several says that the stream consists of any number of requests, each of which is a message. A message of
	// longMessage bytes or more is received only if there is memory for it. Shorter messages need no charge before they
	// arrive: before the handler asks for them, at most a stream's window of bytes can arrive.
	several bool
	// charged is for a stream of several messages. It has an element for each message that has begun and is not yet
	// decoded: the account of the message, or nil if the message is shorter than longMessage.
	charged []*memory.Account
	header  [messageHeader]byte
	have    int // number of bytes in header that have come
	length  int // length of the message in bytes
	left    int // bytes of the message that have not come; if small is set, bytes that the stream may still have

	account *memory.Account // account of the message; nil if nothing is charged, or the codec has taken it
	waiting int             // how many bytes of uploads.waiting are for this upload
	refusal error           // why the upload is refused, or nil; the rest of a refused stream is dropped
}

// begin charges for the upload's message, whose length is known. It fails if there is no memory for it.
func (u *upload) begin(tick int64) error {
	need := int64(u.length)
	if u.length <= rpc.MaxCommitBytes { // a longer message is not decoded, because the codec refuses it
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

// detachAccount returns the account of the upload's message, or nil if nothing is charged. Of several messages it takes
// the first that is not decoded yet. It counts the message as received. From then on the caller must close the account.
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

// end closes all memory accounts of the upload: that of the message that is being received, and those of received
// messages that no handler has taken.
func (u *upload) end() {
	u.detachAccount().Close()
	for _, a := range u.charged {
		a.Close()
	}
	u.charged = nil
}

// next inspects the beginning of content, which is a part of a stream of several messages. It returns the number of
// bytes it has consumed, and must be called again for the remaining bytes.
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
	if u.length >= longMessage && u.length <= maxMessage { // the library refuses messages longer than maxMessage
		need := int64(min(u.length, rpc.MaxUploadBytes)) * rpc.UploadFactor
		if account = u.all.budget.Open(memory.Request); !account.TryGrow(need) {
			u.refusal = account.Refusal(need)
			return k
		}
	}
	u.charged = append(u.charged, account)
	return k
}

// behind reports whether a charged upload arrives too slowly: at less than half of the speed at which it would be
// complete after listener.ReceiveTime.
func (u *upload) behind(tick int64) bool {
	const ticks = int64(listener.ReceiveTime / watchEvery)
	due := int64(u.length) * (tick - u.since - 1) / (2 * ticks)
	return u.account != nil && int64(u.length-u.left) < due
}

// arrived counts n more bytes of the stream's content. payload holds the first of these bytes: all of them, or at least
// those that belong to the message's header. arrived refuses the upload if the upload is too long or there is no memory
// for it.
func (u *upload) arrived(payload []byte, n int, tick int64) {
	if !u.small && u.have < messageHeader {
		k := copy(u.header[u.have:], payload[:min(n, len(payload))])
		n -= k
		if u.have += k; u.have < messageHeader {
			return
		}
		u.length = int(binary.BigEndian.Uint32(u.header[1:]))
		u.left = u.length
		if n < u.length && u.length <= maxMessage { // the library refuses messages longer than maxMessage
			u.refusal = u.begin(tick)
		}
	}
	if u.left -= n; u.left < 0 && u.refusal == nil {
		u.refusal = usererror.MoreThanOneMessage()
	}
}
