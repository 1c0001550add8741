package retrieval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// StreamsSettings say how many rows a server streams, and to how many clients.
type StreamsSettings struct {
	Rows      int       // least number of rows to read in each way of streaming: READ, SQL, Flight SQL
	TableRows int       // rows in the table; each stream reads all of them
	Slow      int       // how many slow streams of each way are open at the same time; their clients read one message a second
	Memory    string    // the server's --memory; the test fails if the server uses more
	Server    string    // the server's executable; "" for this program
	Dir       string    // directory for the server's data; "" for a temporary one
	Out       io.Writer // gets the test's result, as text
	Progress  io.Writer
}

const (
	// slowPace is how long a slow client waits before it reads the next message.
	slowPace = time.Second
	// flatShare limits how much the server's memory may grow: in the second half of the rows it may use 1/flatShare of
	// the memory limit more than in the first half. Some growth is allowed because Go's heap grows until the next
	// garbage collection, which may come earlier in one half than in the other.
	flatShare = 8
)

// Streams tests how much memory a server uses while it streams all rows of TPC-H's customer again and again, by READ,
// by SQL and by Flight SQL. At the same time, many other streams are open whose clients hardly read. Streams returns
// an error if the server uses more memory than --memory allows, or if its memory keeps growing.
func Streams(ctx context.Context, s StreamsSettings) (err error) {
	limit, err := harness.MemorySize(s.Memory)
	if err != nil {
		return err
	}
	for _, n := range []struct {
		flag         string
		value, least int
	}{{"--rows", s.Rows, 1}, {"--table-rows", s.TableRows, 1}, {"--slow", s.Slow, 0}} {
		if n.value < n.least {
			return bench.UsageErrorf("%s is %d: want at least %d", n.flag, n.value, n.least)
		}
	}
	if err := os.Setenv("CROWFOOT_MEMORY", s.Memory); err != nil {
		return err
	}
	t, err := harness.OpenTarget(ctx, bench.Endpoint{Dir: s.Dir}, s.Server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	run := streamRun{StreamsSettings: s, target: t, table: retrievedTables["customer"], limit: limit}
	return harness.OrInterrupted(ctx, run.run(ctx))
}

// streamRun is the state of a run of Streams.
type streamRun struct {
	StreamsSettings
	target    *harness.Target
	table     *retrievedTable
	limit     int64 // bytes of memory that the server may take
	raw       *rawClient
	flightSQL *flightClient
}

// streamWay is one way to stream the table.
type streamWay struct {
	name string
	// stream reads the table once and returns the number of rows. It calls message() each time that it has received a
	// message of the server.
	stream func(ctx context.Context, message func() error) (int64, error)
}

func (r *streamRun) run(ctx context.Context) (err error) {
	if err := r.fill(ctx); err != nil {
		return err
	}
	if r.raw, err = dialRaw(ctx, r.target.Address, r.target.DatabaseName); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.raw.close()) }()
	if r.flightSQL, err = dialFlight(r.target.Address, r.target.DatabaseName); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.flightSQL.close()) }()
	ways := []streamWay{
		{"READ", r.byRaw(r.raw.read(r.table.name, r.table.columns))},
		{"SQL", r.byRaw(r.raw.sql(r.table.query()))},
		{"Flight SQL", r.byFlight},
	}
	slow, stop := context.WithCancel(ctx)
	var clients errgroup.Group
	for _, way := range ways {
		for range r.Slow {
			clients.Go(func() error { return readSlowly(slow, way) })
		}
	}
	for _, way := range ways {
		err = errors.Join(err, r.measure(ctx, way))
	}
	stop()
	return errors.Join(err, clients.Wait())
}

// fill creates the table if it does not exist, and fills it if it has fewer rows than the settings ask for.
func (r *streamRun) fill(ctx context.Context) error {
	if err := r.target.CreateTables(ctx, r.table.ddl); err != nil {
		return err
	}
	there, err := r.target.Filled(ctx, r.table.name, r.TableRows)
	if err == nil && !there {
		_, err = r.target.Fill(ctx, harness.NewScreen(r.Progress), r.table.name, r.TableRows, func(first, last int64) []*spanner.Mutation {
			return r.table.mutations(r.table, int64(r.TableRows), first, last)
		})
	}
	return err
}

func (r *streamRun) byRaw(request rawRequest) func(context.Context, func() error) (int64, error) {
	return func(ctx context.Context, message func() error) (int64, error) {
		d := new(rowDecoder)
		err := r.raw.frames(ctx, request, func(frame []byte) error { return errors.Join(d.decode(frame), message()) })
		if err == nil {
			err = d.end()
		}
		return d.rows, err
	}
}

func (r *streamRun) byFlight(ctx context.Context, message func() error) (rows int64, err error) {
	err = r.flightSQL.each(ctx, r.table.query(), 1, func(batch arrow.RecordBatch) error {
		rows += batch.NumRows()
		return message()
	})
	return rows, err
}

// readSlowly opens a stream and reads it slowly, and then opens the next one, until ctx ends.
func readSlowly(ctx context.Context, way streamWay) error {
	for {
		_, err := way.stream(ctx, func() error { return harness.Wait(ctx, slowPace) })
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s, read slowly: %w", way.name, err)
		}
	}
}

// measure streams the rows in one way, and reports how much memory the server uses.
func (r *streamRun) measure(ctx context.Context, way streamWay) error {
	var rows int64
	// halves holds the most memory that the server used, in bytes: while the first half of the rows was streamed, and
	// while the second half was.
	var halves [2]int64
	began, looked := time.Now(), time.Time{}
	for rows < int64(r.Rows) {
		half := 0
		if 2*rows >= int64(r.Rows) {
			half = 1
		}
		n, err := way.stream(ctx, func() error {
			if time.Since(looked) < harness.MemoryInterval {
				return nil
			}
			looked = time.Now()
			now, err := r.target.Process.PID().Resident()
			halves[half] = max(halves[half], now)
			return err
		})
		if err == nil && n != int64(r.TableRows) {
			err = fmt.Errorf("%d rows of %d came", n, r.TableRows)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		rows += n
	}
	line := new(report.Summary)
	line.Add(fmt.Sprintf("%-10s  ", way.name), fmt.Sprintf("%d rows at %.0f rows/s beside %d slow streams: the server took at most %d MiB in the first half, %d MiB in the second", rows,
		float64(rows)/time.Since(began).Seconds(), 3*r.Slow, halves[0]>>20, halves[1]>>20))
	if err := line.Print(r.Out); err != nil {
		return err
	}
	switch {
	case max(halves[0], halves[1]) > r.limit:
		return fmt.Errorf("%s: the server took %d MiB of memory, and may take %s", way.name, max(halves[0], halves[1])>>20, r.Memory)
	case halves[0] > 0 && halves[1]-halves[0] > r.limit/flatShare:
		return fmt.Errorf("%s: the server's memory grew from %d to %d MiB", way.name, halves[0]>>20, halves[1]>>20)
	}
	return nil
}
