package watch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Stream is the Source that reads a change stream (https://cloud.google.com/spanner/docs/change-streams). It sees
// inserts, updates and deletes, and every change of a row. The handler gets whole transactions. Transactions that
// changed the same row come in the order of their commits.
type Stream struct {
	Client *spanner.Client
	// Name is the name of the change stream.
	Name string
	// Include lists the tables whose changes are delivered, as Name or Schema.Name. An empty list means all tables
	// that the stream watches. If Include names a table that the stream does not watch, Run logs that.
	Include []string
	// Exclude lists tables whose changes are not delivered.
	Exclude []string
	// Heartbeat is the interval at which the database reports that nothing has changed. Each report lets the checkpoint
	// move. 0 means one second, the minimum.
	Heartbeat time.Duration
}

// ID returns the zero FeedID, because a change stream is one feed and no other appears later.
func (s *Stream) ID() FeedID { return FeedID{} }

// Now returns the timestamp of a strong read.
func (s *Stream) Now(ctx context.Context) (time.Time, error) { return now(ctx, s.Client) }

// Feeds returns the stream as the only feed. It does so even if the stream does not exist; then reading the feed
// fails.
func (s *Stream) Feeds(ctx context.Context) ([]Feed, error) {
	f := &streamFeed{s, s.Name}
	name, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	if name != "" {
		f.name = name
	}
	return []Feed{f}, nil
}

// find returns the name with which the stream was created. It may differ from s.Name in case. find returns "" if there
// is no such stream.
func (s *Stream) find(ctx context.Context) (name string, err error) {
	names := spanner.Statement{
		SQL:    "SELECT CHANGE_STREAM_NAME FROM INFORMATION_SCHEMA.CHANGE_STREAMS WHERE LOWER(CHANGE_STREAM_NAME) = @name",
		Params: map[string]any{"name": strings.ToLower(s.Name)},
	}
	err = s.Client.Single().Query(ctx, names).Do(func(r *spanner.Row) error { return r.Columns(&name) })
	return name, err
}

// absent returns the tables of Include that the stream does not watch, and the tables of Exclude that do not exist.
func (s *Stream) absent(ctx context.Context) (absent []absentTable, err error) {
	for _, name := range s.Exclude {
		absent = append(absent, absentTable{name, "Exclude"})
	}
	if absent, err = withoutThose(ctx, s.Client, absent); err != nil || len(s.Include) == 0 {
		return absent, err
	}
	watched := spanner.Statement{
		SQL: `SELECT t.TABLE_SCHEMA, t.TABLE_NAME FROM INFORMATION_SCHEMA.TABLES t, INFORMATION_SCHEMA.CHANGE_STREAMS s
WHERE LOWER(s.CHANGE_STREAM_NAME) = @name AND (s.` + "`ALL`" + ` OR EXISTS (SELECT 1 FROM INFORMATION_SCHEMA.CHANGE_STREAM_TABLES w
  WHERE w.CHANGE_STREAM_NAME = s.CHANGE_STREAM_NAME AND w.TABLE_SCHEMA = t.TABLE_SCHEMA AND w.TABLE_NAME = t.TABLE_NAME))`,
		Params: map[string]any{"name": strings.ToLower(s.Name)},
	}
	there := map[string]bool{}
	err = s.Client.Single().Query(ctx, watched).Do(func(r *spanner.Row) error {
		var id TableID
		err := r.Columns(&id.Schema, &id.Name)
		there[strings.ToLower(id.String())] = true
		return err
	})
	for _, name := range s.Include {
		if err == nil && !there[strings.ToLower(name)] {
			absent = append(absent, absentTable{name, "Include"})
		}
	}
	return absent, err
}

// streamFeed is the feed of a change stream.
type streamFeed struct {
	*Stream
	name string // the stream's name as it was created; it identifies the checkpoint in the repository
}

// ID returns a FeedID with the stream's name in place of the name of a table.
func (f *streamFeed) ID() FeedID {
	return FeedID{TableID: TableID{Database: f.Client.DatabaseName(), Name: f.name}}
}

// Read reads the partitions of the stream concurrently. It starts a partition when all parents of the partition have
// been delivered.
func (f *streamFeed) Read(ctx context.Context, from Checkpoint, out Sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &streamReader{streamFeed: f, out: out, ctx: ctx, fail: cancel, partitions: map[string]*streamPartition{}, transactions: map[transactionKey]*streamTransaction{}}
	r.work, r.room.L = make(chan struct{}, 1), &r.mu
	defer context.AfterFunc(ctx, r.wakeAll)()
	if err := r.begin(from); err != nil {
		return err
	}
	err := r.deliver()
	cancel(err)
	r.running.Wait()
	if cause := context.Cause(ctx); err == nil || errors.Is(err, context.Canceled) {
		err = cause
	}
	return err
}

// begin starts to read the partitions that a checkpoint names. If the checkpoint names none, begin starts with the
// partitions that exist just after its timestamp.
func (r *streamReader) begin(from Checkpoint) error {
	p, err := parseStreamPosition(from.Position)
	if err != nil {
		return err
	}
	if len(p.Partitions) == 0 {
		p.Partitions, err = r.initial(from.Timestamp.Add(time.Microsecond))
		if err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range p.Partitions {
		r.partitions[at.Token] = &streamPartition{token: at.Token, from: at.From, delivered: at.Transactions, parents: at.Parents}
	}
	for _, p := range r.partitions {
		r.startIfReady(p)
	}
	return nil
}

// initial returns the partitions that exist at a time.
func (r *streamReader) initial(start time.Time) (list []partitionPosition, err error) {
	err = r.query(start, "", func(records *changeRecords) error {
		for _, c := range records.children {
			list = append(list, partitionPosition{Token: c.token, From: start})
		}
		return nil
	})
	return list, err
}

// query reads a partition or, if token is "", the list of partitions. For every row, it calls the function each with the
// row's records.
func (r *streamReader) query(start time.Time, token string, each func(*changeRecords) error) error {
	heartbeat := max(r.Heartbeat, time.Second)
	statement := spanner.Statement{
		SQL: "SELECT ChangeRecord FROM " + quote("READ_"+r.Name) +
			"(start_timestamp => @start, end_timestamp => NULL, partition_token => @token, heartbeat_milliseconds => @heartbeat)",
		Params: map[string]any{"start": start, "token": spanner.NullString{StringVal: token, Valid: token != ""}, "heartbeat": heartbeat.Milliseconds()},
	}
	rows := r.Client.Single().Query(r.ctx, statement)
	defer rows.Stop()
	d := newRecordDecoder(r.Client.DatabaseName())
	for {
		row, err := rows.Next()
		if errors.Is(err, iterator.Done) {
			return nil
		}
		if err != nil {
			return r.explain(err)
		}
		records, err := d.decode(row)
		if err != nil {
			return err
		}
		if err := each(records); err != nil {
			return err
		}
	}
}

// explain replaces the error of the database if the stream does not exist. The database's error says that the function
// READ_<stream> is missing; explain returns NOT_FOUND for the stream. It returns other errors unchanged.
func (r *streamReader) explain(err error) error {
	if status.Code(err) != codes.InvalidArgument {
		return err
	}
	if name, asked := r.find(r.ctx); asked != nil || name != "" {
		return err
	}
	return status.Errorf(codes.NotFound, "Change Stream not found: %s", r.Name)
}

// startIfReady starts to read a partition unless the partition waits for its parents. The caller holds mu.
func (r *streamReader) startIfReady(p *streamPartition) {
	if len(p.parents) > 0 || p.started {
		return
	}
	p.started = true
	start, skip := p.from, map[string]bool{}
	for _, id := range p.delivered {
		skip[id] = true
	}
	r.running.Go(func() {
		if err := r.query(start, p.token, func(records *changeRecords) error { return r.add(p, records, start, skip) }); err != nil {
			r.fail(err)
			return
		}
		r.end(p)
	})
}

// add puts the records of a row into the queue of their partition. It waits while the queue is too long (see
// maxQueued). skip holds the ids of the transactions at the timestamp start that were delivered before.
func (r *streamReader) add(p *streamPartition, records *changeRecords, start time.Time, skip map[string]bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range records.data {
		if d.commit.Equal(start) && skip[d.transaction] {
			continue
		}
		r.addData(p, d)
		r.out.Observe(Reading{Timestamp: d.commit, Rows: len(d.changes)})
	}
	for _, at := range records.heartbeats {
		p.heartbeat = at
		r.out.Observe(Reading{Timestamp: at})
	}
	p.children = append(p.children, records.children...)
	r.wake()
	for (p.changes > maxQueued || p.bytes > maxQueuedBytes) && !p.queue[0].commit.Equal(p.queue[len(p.queue)-1].commit) && r.ctx.Err() == nil {
		r.room.Wait()
	}
	return r.ctx.Err()
}

// end records that the query of a partition has ended.
func (r *streamReader) end(p *streamPartition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.ended = true
	r.finishIfDelivered(p)
	r.wake()
}

// finishIfDelivered replaces a partition by its children when all transactions of the partition are delivered. The
// caller holds mu.
func (r *streamReader) finishIfDelivered(p *streamPartition) {
	if !p.ended || len(p.queue) > 0 {
		return
	}
	delete(r.partitions, p.token)
	for _, c := range p.children {
		child := r.partitions[c.token]
		if child == nil {
			child = &streamPartition{token: c.token, from: c.start, parents: c.parents}
			r.partitions[c.token] = child
		}
		var left []string
		for _, parent := range child.parents {
			if parent != p.token {
				left = append(left, parent)
			}
		}
		child.parents = left
		r.startIfReady(child)
	}
}

// includes reports whether changes of a table are delivered.
func (s *Stream) includes(t TableID) bool {
	return (len(s.Include) == 0 || contains(s.Include, t)) && !contains(s.Exclude, t)
}

// streamReader reads one change stream.
type streamReader struct {
	*streamFeed
	out     Sink
	ctx     context.Context
	fail    context.CancelCauseFunc
	running sync.WaitGroup
	work    chan struct{} // holds a value when a transaction may be ready for delivery

	mu           sync.Mutex
	room         sync.Cond                             // signals that a queue has become shorter, so that there is room in it
	partitions   map[string]*streamPartition           // by token; partitions that are being read, and those that wait for their parents
	transactions map[transactionKey]*streamTransaction // undelivered transactions that have several records
	candidates   []*streamTransaction                  // transactions that may have become ready for delivery
}

// maxQueued and maxQueuedBytes limit the changes of a partition that wait in its queue: their number, and the bytes of
// their JSON.
const (
	maxQueued      = 10_000
	maxQueuedBytes = 32 << 20
)

// streamPartition is a partition of the stream.
type streamPartition struct {
	token   string
	parents []string // the tokens of parents that are not completely delivered
	started bool
	// from and delivered say how much of the partition is delivered. The field from is a timestamp before which all
	// transactions are delivered. The field delivered holds the ids of the delivered transactions at this timestamp.
	from      time.Time
	delivered []string
	heartbeat time.Time // everything up to this timestamp has been read

	queue    []*streamTransaction // transactions that were read and are not yet delivered, in the order of their records
	popped   int                  // the number of transactions at the head of the queue that popReady has returned
	changes  int                  // the number of changes in the queue
	bytes    int                  // the bytes of JSON of the changes in the queue
	ended    bool
	children []childPartition
}

func (r *streamReader) wake() {
	select {
	case r.work <- struct{}{}:
	default:
	}
}

func (r *streamReader) wakeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room.Broadcast()
	r.wake()
}
