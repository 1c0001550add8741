package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"cloud.google.com/go/spanner"
)

// manyCommitters is the number of clients whose commits should share their syncs.
const manyCommitters = 64

// commits compares single-row commits of one client with the machine's own fsync, and of many clients with one.
func (b Points) commits(ctx context.Context, server *process, client *spanner.Client) error {
	commit := func(ctx context.Context, r *rand.Rand) error {
		_, err := client.Apply(ctx, []*spanner.Mutation{row(r.Int64N(int64(b.Rows)))}, spanner.ApplyAtLeastOnce())
		return err
	}
	one, many, fsync := newResult(), newResult(), newResult()
	for range rounds {
		if err := fsync.syncs(b.Dir, b.Seconds/rounds/4); err != nil {
			return err
		}
		if err := one.drive(ctx, server, 1, b.Seconds/rounds, commit); err != nil {
			return err
		}
		if err := many.drive(ctx, server, manyCommitters, b.Seconds/rounds, commit); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.Out, "\nsingle-row commits  clients     ops/s    p50 us    p99 us   CPU us/op\n")
	for _, r := range []struct {
		name    string
		clients int
		*result
	}{{"fsync of 300 bytes", 1, fsync}, {"mutation", 1, one}, {"mutation", manyCommitters, many}} {
		fmt.Fprintf(b.Out, "%-19s %7d %9.0f %9d %9d %11.1f\n", r.name, r.clients, r.perSecond(),
			r.quantile(50).Microseconds(), r.quantile(99).Microseconds(), float64(r.cpuPerOperation().Nanoseconds())/1e3)
	}
	fmt.Fprintf(b.Out, "commit p50 minus fsync p50: %.3f ms (target <= 0.4)\n", (one.quantile(50)-fsync.quantile(50)).Seconds()*1e3)
	fmt.Fprintf(b.Out, "commits per second, %d clients / 1 client: %.1f (target >= 12)\n", manyCommitters, many.perSecond()/one.perSecond())
	return nil
}

// syncs appends 300 bytes to a file and syncs it, again and again: what durability costs on this machine.
func (r *result) syncs(dir string, d time.Duration) error {
	f, err := os.OpenFile(filepath.Join(dir, "fsync"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, 300)
	began := time.Now()
	for time.Since(began) < d {
		t := time.Now()
		if _, err := f.Write(data); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		r.latency.RecordValue(max(1, time.Since(t).Microseconds()))
		r.operations++
	}
	r.elapsed += time.Since(began)
	return nil
}

// restart kills the server as a crash does and says how long it takes to be ready again. It returns the new one.
func (b Points) restart(ctx context.Context, server *process, data string) (*process, error) {
	server.kill()
	size, err := diskSize(data)
	if err != nil {
		return server, err
	}
	again, err := spawn(ctx, "start", "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
	if err != nil {
		return server, err
	}
	fmt.Fprintf(b.Out, "\nstart after kill -9 on %.2f GB: ready after %.3f s (target <= 0.5 at 1 GB)\n", float64(size)/1e9, again.ready.Seconds())
	return again, nil
}

// heading names what the figures belong to.
func (b Points) heading() {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version = s.Value
			}
		}
	}
	fmt.Fprintf(b.Out, "crowfoot bench points: %s %s/%s, %d cores, commit %s, %d rows, %v a measure\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), version, b.Rows, b.Seconds)
}
