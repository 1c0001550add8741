package cost

import (
	"time"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/stats/live"
)

// StartRead says that the request is a Read. partitioned says whether the request has a partition token.
func (r *Recorder) StartRead(p *prepare.Projection, tag string, partitioned bool) {
	r.AnnounceRead(p, tag, partitioned)
	r.CPU.Is(&p.Typical)
	r.touch(p.Access)
}

// AnnounceRead says that the request announces a read, whose rows later requests fetch. Statistics count the
// announcement as the execution, and the later requests add their rows and times to it.
func (r *Recorder) AnnounceRead(p *prepare.Projection, tag string, partitioned bool) {
	r.kind = recordedRead
	r.read.Access, r.read.Tag, r.read.Partitioned = p.Access, tag, partitioned
}

// SetRead sets the number of rows that the read returned, and their bytes of data.
func (r *Recorder) SetRead(rows, bytes int64) { r.read.Rows, r.read.Bytes = rows, bytes }

func (r *Recorder) endRead(now time.Time, total Cost, e Ending) {
	v := &r.read
	v.Outcome, v.InReadWrite, v.End, v.CPU = e.outcome(e.Err, now, total.Latency), r.locks.transaction != nil, now, total.CPU
	v.LockingDelay, v.ClientWait = total.LockWait, r.Wire.ClientWait
	r.db.Stats().Read(v)
	r.addToTimeline(live.EventRead, v.Access.Target(), total, v.Rows, e.Err)
}
