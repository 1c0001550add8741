package result

import "time"

// restAfter is how long a stream waits for its client before its rows let go of what the storage engine holds for them: memory that has been written and files
// that have been compacted meanwhile. It is long beside what it costs to begin a scan anew.
const restAfter = time.Second

// A Rest has the rows of a stream released while a message waits for the client. The zero Rest is ready.
type Rest struct {
	timer    *time.Timer // runs while a message is being sent; nil before the first
	released chan struct{}
}

// Begin has the rows released if the message that is about to be sent is not taken for restAfter. End must follow. The rows are always the same ones.
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

// End waits until the rows are released, if that has begun.
func (r *Rest) End() {
	if r.timer != nil && !r.timer.Stop() {
		<-r.released
	}
}
