package database

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// openStreams opens the change streams of the database.
func (d *Database) openStreams() (err error) {
	r := d.registry
	d.streams, err = changestream.Open(changestream.Config{Space: d.space, Store: r.store, Oracle: r.oracle, Clock: r.cfg.Clock, Secret: r.identity.Secret})
	return err
}

// AddSplitPoints stores all the split points durably, or none of them. Then it splits the partitions of change streams
// at these points.
func (d *Database) AddSplitPoints(points []split.Point) error {
	err := d.splits.AddPoints(points)
	if err == nil {
		d.reshapeStreams()
	}
	return err
}

// reshapeStreams splits and joins the partitions of change streams so that they match the splits. If that fails,
// splitOnce, which runs every minute, tries again.
func (d *Database) reshapeStreams() {
	for _, s := range d.Catalog().Streams {
		bounds := func() [][]byte {
			newest := d.Catalog()
			at := slices.IndexFunc(newest.Streams, func(o *schema.ChangeStream) bool { return o.ID == s.ID })
			if at < 0 {
				return nil // the stream was dropped, so Reshape does nothing
			}
			return d.boundsOf(newest, newest.Streams[at])
		}
		if err := d.streams.Reshape(s.ID, bounds); err != nil && !d.Dropped() {
			d.log().Error("split a change stream", slog.String("stream", s.Name), slog.Any("error", err))
		}
	}
}

// boundsOf returns the bounds of the partitions of a change stream: those bounds of splits that lie within the tables
// that the stream watches.
func (d *Database) boundsOf(c *schema.Catalog, s *schema.ChangeStream) (bounds [][]byte) {
	all := d.splits.Bounds(d.registry.cfg.Clock())
	if len(all) == 0 {
		return nil
	}
	spaces := watchedSpaces(c, s)
	for _, b := range all {
		for _, space := range spaces {
			if bytes.Compare(space.Start, b) < 0 && bytes.Compare(b, space.End) < 0 {
				bounds = append(bounds, b)
				break
			}
		}
	}
	return bounds
}

// watchedSpaces returns the key ranges of the root tables of all tables that a change stream watches. The key range of
// a root table also contains the rows of all tables interleaved in it.
func watchedSpaces(c *schema.Catalog, s *schema.ChangeStream) (spaces []table.Span) {
	roots := map[*schema.Table]bool{}
	for t := range c.Tables() {
		if !s.Watches(t) {
			continue
		}
		for t.Parent != nil {
			t = t.Parent
		}
		if !roots[t] {
			roots[t] = true
			space, _ := table.TableLayout(t).Space()
			spaces = append(spaces, space)
		}
	}
	return spaces
}

// collectStreams deletes the records of each change stream that are older than the retention period of the stream.
func (d *Database) collectStreams() (err error) {
	now := d.registry.oracle.Now()
	for _, s := range d.Catalog().Streams {
		err = errors.Join(err, d.streams.Collect(s.ID, now-mvcc.Timestamp(s.Retention.Microseconds())))
	}
	return err
}

// EndChangeStreamQueries ends all queries of change streams. The server calls it when it stops, because such queries
// might otherwise never end.
func (r *Registry) EndChangeStreamQueries() {
	for _, d := range *r.databases.Load() {
		d.streams.Close(usererror.ServerStopping())
	}
}

// ChangeStreamArguments are the arguments of the function READ_<stream>.
type ChangeStreamArguments struct {
	Start, End, Token, Heartbeat, ReadOptions value.Value
}

// ReadChangeStream begins a query of a change stream. resume is the position after which an interrupted query
// continues, or zero for a new query. memory is the account that the reader charges for the bytes that it keeps.
func (d *Database) ReadChangeStream(ctx context.Context, s *schema.ChangeStream, args ChangeStreamArguments, resume changestream.Position, memory *memory.Account) (*changestream.Reader, error) {
	if err := args.check(); err != nil {
		return nil, err
	}
	q := changestream.Query{Stream: s, Start: ceil(args.Start), End: mvcc.Latest, Heartbeat: time.Duration(args.Heartbeat.AsInt64()) * time.Millisecond, Resume: resume, Memory: memory}
	if !args.End.IsNull() {
		q.End = mvcc.TimestampOf(args.End.AsTime())
	}
	if !args.Token.IsNull() {
		q.Token = args.Token.AsString()
		q.Partition = true
	}
	return d.streams.Read(ctx, q)
}

// check refuses invalid arguments: https://cloud.google.com/spanner/docs/change-streams/details#query-syntax.
func (a *ChangeStreamArguments) check() error {
	switch {
	case a.Start.IsNull():
		return usererror.StreamStartNull()
	case !a.End.IsNull() && a.End.AsTime().Before(a.Start.AsTime()):
		return usererror.StreamEndBeforeStart(a.Start.AsTime(), a.End.AsTime())
	case a.Heartbeat.IsNull():
		return usererror.StreamHeartbeatNull()
	case !a.ReadOptions.IsNull():
		return usererror.StreamReadOptions()
	}
	if ms := a.Heartbeat.AsInt64(); ms < changestream.MinHeartbeat.Milliseconds() || ms > changestream.MaxHeartbeat.Milliseconds() {
		return usererror.StreamHeartbeatRange(changestream.MinHeartbeat.Milliseconds(), changestream.MaxHeartbeat.Milliseconds(), ms)
	}
	return nil
}

// ceil returns the first commit timestamp at or after the time v.
func ceil(v value.Value) mvcc.Timestamp {
	t := v.AsTime()
	ts := mvcc.TimestampOf(t)
	if ts.Time().Before(t) && ts < math.MaxInt64 {
		ts++
	}
	return ts
}
