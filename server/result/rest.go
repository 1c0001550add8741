package result

import "time"

// restAfter is how long a message may wait for the client before the stream releases the resources of its rows. The
// resources are those of an open scan, for which the storage engine must keep memtables and files that it has already
// flushed or compacted into others. When the client reads again, the stream starts the scan again; that takes much less
// time than restAfter.
const restAfter = time.Second

// A Rest releases the storage resources of a stream's rows if a message waits long for the client. The zero Rest is
// ready to use.
type Rest struct {
	timer    *time.Timer // runs while a message is being sent; nil before the first message
	released chan struct{}
}

// Begin makes rows release their resources if sending the next message takes longer than restAfter. It does nothing if
// rows have no method Release. The caller calls End when the message was sent. All calls of Begin on a Rest must have
// the same rows.
func (r *Rest) Begin(rows Rows) {
	held, ok := rows.(interface{ Release() })
	switch {
	case !ok:
	case r.timer == nil:
		r.released = make(chan struct{}, 1)
		r.timer = time.AfterFunc(restAfter, func() {
			defer func() { r.released <- struct{}{} }()
			held.Release()
		})
	default:
		r.timer.Reset(restAfter)
	}
}

// End cancels the release; if the release has begun, End waits for its end.
func (r *Rest) End() {
	if r.timer != nil && !r.timer.Stop() {
		<-r.released
	}
}
