package changestream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Limits on the arguments of a query: https://cloud.google.com/spanner/docs/change-streams/details#query-syntax.
const (
	MinHeartbeat = time.Second
	MaxHeartbeat = 300 * time.Second
	// MaxAhead is how far the start of a query may be in the future.
	MaxAhead = 10 * time.Minute
)

// A Query holds the arguments of a query of a change stream.
type Query struct {
	Stream *schema.ChangeStream
	// Partition is true for a query that reads the partition that Token names. Otherwise the query lists the
	// partitions that live at Start.
	Partition bool
	Token     string
	Start     mvcc.Timestamp
	// End is the last timestamp to read. If it is mvcc.Latest, the reader continues until the partition ends.
	End       mvcc.Timestamp
	Heartbeat time.Duration
	// Resume is the position at which an interrupted query continues; zero for a new query.
	Resume Position
	// Memory is the account that is charged for the records that the reader keeps; nil charges nothing.
	Memory *memory.Account
}

// A Position says how far a partition was read: up to just before the record with this commit timestamp and sequence
// number. Child partition records have the timestamp at which the children begin. The position after a heartbeat at T
// is the first position after T.
type Position struct {
	Timestamp mvcc.Timestamp
	Sequence  uint32
}

// chunkBytes is how many bytes of records a reader copies from the store at a time. The reader closes its iterator
// before it returns these records, because a slow client may take them late, and an open iterator keeps the store from
// freeing files and memory.
const chunkBytes = 64 << 10

// A Reader reads one partition, or the list of partitions. Only one goroutine may use it; Next blocks until there is a
// row.
type Reader struct {
	Query
	ctx       context.Context
	log       *Log
	stream    *stream
	partition *Partition // nil if the query lists partitions

	next  Position  // the position of the next record to copy from the store
	over  bool      // whether the query ends after the rows in the field rows
	rows  []row     // the rows that Next has not returned yet
	data  []byte    // the buffer that holds the records of the rows in the field rows
	at    row       // the row to which Next has moved last
	quiet time.Time // when the reader last got rows; the next heartbeat is due Query.Heartbeat later
}

// row is a row that a reader returns. The field record is the encoded google.protobuf.Value. The field after is the
// position after the row.
type row struct {
	record []byte
	after  Position
}

// Read begins a query. When ctx ends, a reader that waits returns the cause (context.Cause).
func (l *Log) Read(ctx context.Context, q Query) (*Reader, error) {
	s, err := l.find(q.Stream.ID)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, usererror.ChangeStreamNotFound(q.Stream.Name)
	}
	r := &Reader{Query: q, ctx: ctx, log: l, stream: s, next: Position{Timestamp: q.Start}, quiet: l.cfg.Clock()}
	if q.Partition {
		if r.partition, err = s.find(q.Token); err != nil {
			return nil, err
		}
	}
	if q.Resume != (Position{}) {
		r.next = q.Resume
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// find returns the partition that a token names, or an error if the token is not valid for this stream.
func (s *stream) find(token string) (*Partition, error) {
	stream, id, ok := s.log.parseToken(token)
	if !ok || stream != s.id {
		return nil, usererror.ForeignStreamToken(token)
	}
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	p := s.partitions[id]
	if p == nil {
		return nil, usererror.PartitionExpired()
	}
	return p, nil
}

// check returns an error if the timestamps of a query are older than the kept records, too far in the future, or
// outside of the partition's life. The Start of a resumed query may be older than the kept records, because the reader
// reads only the records from the position Resume on.
func (r *Reader) check() error {
	now := r.log.cfg.Oracle.Now()
	earliest := r.earliest(now)
	latest := now + mvcc.Timestamp(MaxAhead.Microseconds())
	if r.Start > latest {
		return usererror.StreamStartInFuture(earliest.Time(), latest.Time(), r.Start.Time())
	}
	if r.partition != nil {
		if err := r.partition.check(r.Start, earliest); err != nil {
			return err
		}
	}
	if r.next.Timestamp < earliest {
		return usererror.StreamStartTooOld(earliest.Time(), r.next.Timestamp.Time())
	}
	return nil
}

// check returns an error if start is outside of the partition's life, or if the partition ended before earliest, the
// earliest timestamp whose records are kept.
func (p *Partition) check(start, earliest mvcc.Timestamp) error {
	e := p.ending.Load()
	if e != nil && e.until < earliest {
		return usererror.PartitionExpired()
	}
	if p.from <= start && (e == nil || start <= e.until) {
		return nil
	}
	var until time.Time
	if e != nil {
		until = e.until.Time()
	}
	return usererror.StreamStartOutsidePartition(p.from.Time(), until, start.Time())
}

// earliest returns the oldest timestamp from which on all records are kept.
func (r *Reader) earliest(now mvcc.Timestamp) mvcc.Timestamp {
	return max(mvcc.Timestamp(r.stream.earliest.Load()), now-mvcc.Timestamp(r.Stream.Retention.Microseconds()))
}

// Next moves to the next row, and waits if there is none yet. ok is false at the end of the query.
func (r *Reader) Next() (ok bool, err error) {
	for len(r.rows) == 0 {
		if r.over {
			return false, nil
		}
		if err := r.fill(); err != nil {
			return false, err
		}
	}
	r.at, r.rows = r.rows[0], r.rows[1:]
	return true, nil
}

// Record returns the current row as an encoded google.protobuf.Value. The bytes are valid until the next call of Next.
func (r *Reader) Record() []byte { return r.at.record }

// Position returns the position after the current row.
func (r *Reader) Position() Position { return r.at.after }

// Ready reports whether Next would return at once.
func (r *Reader) Ready() bool { return len(r.rows) > 0 || r.over }

// fill reads rows from the store, or waits until there are some. It may return nil without having found rows.
func (r *Reader) fill() error {
	if r.partition == nil {
		return r.listPartitions()
	}
	select {
	case <-r.stream.ended:
		return r.gone()
	default:
	}
	wake := r.partition.nextWake() // called before Visible(), so that a commit between the two calls wakes this reader
	visible := r.log.cfg.Oracle.Visible()
	end := r.partition.ending.Load() // loaded after Visible(), so that an ending that is already visible is found
	limit := min(visible, r.End)
	if end != nil {
		limit = min(limit, end.until-1)
	}
	if err := r.fetch(limit); err != nil || len(r.rows) > 0 {
		r.quiet = r.log.cfg.Clock()
		return err
	}
	switch {
	case end != nil && visible >= end.until && r.Start > end.until: // Start was in the future when the query began
		return usererror.StreamStartOutsidePartition(r.partition.from.Time(), end.until.Time(), r.Start.Time())
	case end != nil && min(visible, r.End) >= end.until:
		r.addChildren(end)
		return nil
	case visible >= r.End:
		r.over = true
		return nil
	}
	return r.wait(wake)
}

// fetch reads the records whose timestamps are not above the parameter limit, but stops when it has chunkBytes. While
// it waits for memory, it has no iterator open, since an open iterator keeps the store from freeing files and memory.
func (r *Reader) fetch(limit mvcc.Timestamp) error {
	if r.next.Timestamp > limit {
		return nil
	}
	r.forget()
	for {
		lacking, err := r.fetchChunk(limit)
		if err == nil && lacking > 0 {
			err = r.Memory.Grow(r.ctx, int64(lacking))
		}
		if err != nil {
			return fmt.Errorf("read change stream: %w", err)
		}
		if lacking == 0 {
			return nil
		}
		r.data = make([]byte, 0, lacking)
	}
}

// fetchChunk reads as many records as there is memory for. If there is not enough memory for the first record, it
// reads nothing and returns how many bytes are lacking.
func (r *Reader) fetchChunk(limit mvcc.Timestamp) (lacking int, err error) {
	p := r.partition
	it, err := r.log.cfg.Store.NewIter(p.appendKey(nil, r.next), p.appendKey(nil, Position{Timestamp: limit + 1}))
	if err != nil {
		return 0, err
	}
	defer it.Close()
	// Collect may have deleted records after the query began.
	if earliest := mvcc.Timestamp(r.stream.earliest.Load()); r.next.Timestamp < earliest {
		return 0, usererror.StreamStartTooOld(earliest.Time(), r.next.Timestamp.Time())
	}
	full, lacking, err := r.copyRows(it)
	if !full && lacking == 0 && err == nil {
		r.next = Position{Timestamp: limit + 1}
	}
	return lacking, err
}

// copyRows copies records until it has chunkBytes of them or has no memory for more; in both cases full is true. If
// there is not enough memory for the first record, it returns how many bytes are lacking.
func (r *Reader) copyRows(it kv.Iterator) (full bool, lacking int, err error) {
	type place struct {
		begin, end int
		after      Position
	}
	var places []place
	for ok := it.First(); ok && !full; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			return false, 0, err
		}
		if lacking := r.reserve(len(v)); lacking > 0 {
			if len(places) == 0 {
				return false, lacking, nil
			}
			full = true
			break
		}
		begin := len(r.data)
		r.data = append(r.data, v...)
		r.next = r.partition.positionOf(it.Key())
		r.next.Sequence++
		places = append(places, place{begin, len(r.data), r.next})
		full = len(r.data) >= chunkBytes
	}
	for _, p := range places {
		r.rows = append(r.rows, row{r.data[p.begin:p.end], p.after})
	}
	return full, 0, it.Error()
}

// reserve makes space in r.data for n more bytes of records. If there is not enough memory, it returns how many bytes
// are lacking.
func (r *Reader) reserve(n int) (lacking int) {
	n = max(n, minChunk)
	more := len(r.data) + n - cap(r.data)
	if more <= 0 {
		return 0
	}
	more = max(more, min(cap(r.data), chunkBytes)) // at least doubles a small buffer, so that it is copied seldom
	if !r.Memory.TryGrow(int64(more)) {
		return more
	}
	r.data = append(make([]byte, 0, cap(r.data)+more), r.data...)
	return 0
}

// forget frees the memory of the records. All of them must have been returned.
func (r *Reader) forget() {
	r.Memory.Shrink(int64(cap(r.data)))
	r.rows, r.data, r.at = nil, nil, row{}
}

// minChunk is the minimum number of free bytes that reserve makes in r.data. It is enough for one record of a small
// row.
const minChunk = 1 << 10

// wait waits for a commit, for the time of the next heartbeat, or for the end of the query. When the heartbeat is due,
// it adds a heartbeat record. When the clock reaches the end of the query, it raises the oracle's watermark Visible to
// that timestamp.
func (r *Reader) wait(wake <-chan struct{}) error {
	r.forget()
	now := r.log.cfg.Oracle.Now()
	most := r.Heartbeat - r.log.cfg.Clock().Sub(r.quiet)
	if r.End != mvcc.Latest {
		most = min(most, r.End.Time().Sub(now.Time()))
	}
	due, err := r.sleep(most, wake)
	if err != nil || !due {
		return err
	}
	if r.End != mvcc.Latest && r.log.cfg.Oracle.Now() >= r.End {
		return r.closeAt(r.End)
	}
	if r.log.cfg.Clock().Sub(r.quiet) >= r.Heartbeat {
		return r.beat()
	}
	return nil
}

// sleep waits until the duration d has passed or wake is closed. due is true if d has passed.
func (r *Reader) sleep(d time.Duration, wake <-chan struct{}) (due bool, err error) {
	defer cpu.Waiting(r.ctx)()
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-wake:
		return false, nil
	case <-timer.C:
		return true, nil
	case <-r.stream.ended:
		return false, r.gone()
	case <-r.ctx.Done():
		return false, context.Cause(r.ctx)
	}
}

// gone returns the error of a reader whose stream was dropped or whose log was closed.
func (r *Reader) gone() error {
	if r.stream.why != nil {
		return r.stream.why
	}
	return usererror.ChangeStreamNotFound(r.Stream.Name)
}

// closeAt raises the oracle's watermark Visible to a timestamp. If the store refuses to write for this because the disk
// is full, closeAt waits for the time retryRefused and returns nil. The caller then tries again.
func (r *Reader) closeAt(at mvcc.Timestamp) error {
	err := r.log.cfg.Oracle.CloseAt(r.ctx, at)
	if errors.Is(err, kv.ErrRefused) {
		_, err = r.sleep(retryRefused, nil)
	}
	return err
}

// retryRefused is how long a reader waits before it tries again after the store refused a write.
const retryRefused = time.Second

// beat adds a heartbeat if there is no new record. If several readers wait at the same time, one of them raises the
// oracle's watermark Visible, and all of them use the raised watermark for their heartbeats.
func (r *Reader) beat() error {
	o := r.log.cfg.Oracle
	now := o.Now()
	if now-o.Visible() > mvcc.Timestamp(r.Heartbeat.Microseconds())/2 {
		if err := r.closeAt(now); err != nil {
			return err
		}
	}
	limit := min(o.Visible(), r.End)
	if end := r.partition.ending.Load(); end != nil {
		limit = min(limit, end.until-1)
	}
	if err := r.fetch(limit); err != nil {
		return err
	}
	r.quiet = r.log.cfg.Clock()
	if at := r.next.Timestamp - 1; len(r.rows) == 0 && at >= r.Start {
		r.rows = []row{{heartbeatRecord(at), r.next}}
	}
	return nil
}

// addChildren adds the records that name the partition's children, and ends the reader.
func (r *Reader) addChildren(e *ending) {
	r.rows = childRecords(e.until, e.children, false)
	r.skip(e.until)
}

// listPartitions adds the records that name the partitions which live at Start, and ends the reader. It waits if Start
// is in the future.
func (r *Reader) listPartitions() error {
	for {
		now := r.log.cfg.Oracle.Now()
		if now >= r.Start {
			break
		}
		if _, err := r.sleep(r.Start.Time().Sub(now.Time()), nil); err != nil {
			return err
		}
	}
	if err := r.closeAt(r.Start); err != nil || r.log.cfg.Oracle.Visible() < r.Start {
		return err
	}
	r.rows = childRecords(r.Start, r.stream.at(r.Start), true)
	r.skip(r.Start)
	return nil
}

// skip ends the reader after its current rows. The parameter at is the timestamp of all these rows. If the query is
// resumed, skip removes the rows that were returned before.
func (r *Reader) skip(at mvcc.Timestamp) {
	if r.Resume.Timestamp == at {
		r.rows = r.rows[min(int(r.Resume.Sequence), len(r.rows)):]
	}
	r.over = true
}
