package stats

import "time"

// A Read is one execution of a read through the READ API, however many splits it touched.
type Read struct {
	Access      *Access // describes the table or index and the columns that are read
	Tag         string  // tag of the request
	Partitioned bool    // the request has a partition token
	Outcome     Outcome
	InReadWrite bool
	Continues   bool // the request only reads further rows of an execution that was counted; see Query.Continues

	End                time.Time
	CPU                time.Duration
	LockingDelay       time.Duration
	ClientWait         time.Duration // how long replies waited because the client did not read them
	LeaderRefreshDelay time.Duration
	Rows, Bytes        int64 // returned to the client
	DiskIOCost         float64
}

// These constants say what each element of tally.sums means in the statistics of reads.
const (
	readCount = iota
	readFailed
	readRows
	readBytes
	readCPU
	readFailedCPU
	readLockingDelay
	readClientWait
	readLeaderRefresh
	readInReadWrite
	readDiskIO
	readSums
)

// The kinds of reads that statistics count in different rows.
const (
	plainRead = iota
	partitionedRead
)

func readWeight(t *tally) int64 { return t.sums[readCPU] + t.sums[readFailedCPU] }

func succeededReads(t *tally) int64 { return t.sums[readCount] - t.sums[readFailed] }

// Read counts an execution. It does not keep r after it returns.
func (c *Collector) Read(r *Read) {
	if c.cfg.Off {
		return
	}
	tag := Tag(r.Tag)
	fp, kind := fingerprintOf(tag, r.Access.fingerprint), uint8(plainRead)
	if r.Partitioned {
		kind = partitionedRead
	}
	s := c.enter()
	defer s.mu.Unlock()
	open := s.at(c, r.End)
	b := open.board(reads)
	key := subjectKey(fp, kind)
	t := b.tallies[key]
	if t == nil {
		t = b.add(key, subject{fingerprint: fp, kind: kind, tag: tag, lists: [3][]string{r.Access.names}})
	}
	if r.Continues {
		r.addCost(t)
		return
	}
	r.count(t)
	open.operateOne(r.Access)
}

func (r *Read) count(t *tally) {
	t.sums[readCount]++
	if r.InReadWrite {
		t.sums[readInReadWrite]++
	}
	if r.Outcome != Succeeded {
		t.sums[readFailed]++
		t.sums[readFailedCPU] += int64(r.CPU)
		return
	}
	r.addCost(t)
}

// addCost adds the cost of a request that belongs to a successful execution.
func (r *Read) addCost(t *tally) {
	t.sums[readRows] += r.Rows
	t.sums[readBytes] += r.Bytes
	t.sums[readCPU] += int64(r.CPU)
	t.sums[readLockingDelay] += int64(r.LockingDelay)
	t.sums[readClientWait] += int64(r.ClientWait)
	t.sums[readLeaderRefresh] += int64(r.LeaderRefreshDelay)
	t.sums[readDiskIO] += int64(r.DiskIOCost * millionth)
}

var readStatsColumns = []column{
	intervalEnd,
	list("READ_COLUMNS", readColumns),
	fingerprintColumn("FPRINT"),
	sum("EXECUTION_COUNT", readCount),
	average("AVG_ROWS", readRows, ones, succeededReads),
	average("AVG_BYTES", readBytes, ones, succeededReads),
	average("AVG_CPU_SECONDS", readCPU, nanos, succeededReads),
	average("AVG_LOCKING_DELAY_SECONDS", readLockingDelay, nanos, succeededReads),
	average("AVG_CLIENT_WAIT_SECONDS", readClientWait, nanos, succeededReads),
	average("AVG_LEADER_REFRESH_DELAY_SECONDS", readLeaderRefresh, nanos, succeededReads),
	tagColumn("REQUEST_TAG"),
	sum("RUN_IN_RW_TRANSACTION_EXECUTION_COUNT", readInReadWrite),
	text("READ_TYPE", func(s *subject) string {
		if s.kind == partitionedRead {
			return "PARTITIONED_READ"
		}
		return "READ"
	}),
	average("AVG_DISK_IO_COST", readDiskIO, millionth, succeededReads),
}
