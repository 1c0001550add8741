package result

import "time"

// restAfter is how long a stream waits for its client before its rows release the resources of the storage engine: memtables that
// have been written and files that have been compacted in the meantime. It is much longer than the time to start a scan again.
const restAfter = time.Second

// A Rest releases the rows of a stream while a message waits for the client. The zero Rest is ready to use.
type Rest struct {
	timer    *time.Timer // runs while a message is being sent; nil before the first
	released chan struct{}
}

// Begin releases the rows if sending the next message takes longer than restAfter. End must follow. Every call must have the same
// rows.
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

// End waits for the release of the rows, if it has begun.
func (r *Rest) End() {
	if r.timer != nil && !r.timer.Stop() {
		<-r.released
	}
}
