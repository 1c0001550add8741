package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

var errRefused = grpcstatus.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`)

// TestNoAnswer checks that a command waits for a server that refuses connections or does not answer. The command must
// print a line every few seconds, and give up after answerLimit.
func TestNoAnswer(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			shown, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer shown.Close()
			p := newConnectivity("127.0.0.1:1")
			screen := newTransferScreen(shown, p)
			begin := time.Now()
			err = p.answered(t.Context(), func(ctx context.Context) error {
				for ctx.Err() == nil {
					err := p.wait(func() error {
						if silent {
							<-ctx.Done()
							return grpcstatus.FromContextError(ctx.Err()).Err()
						}
						return errRefused
					})
					if grpcstatus.Code(err) == codes.Unavailable {
						time.Sleep(time.Second)
					}
				}
				return ctx.Err()
			})
			screen.close()
			want, reason := "127.0.0.1:1 has not answered for 20s", ": dial tcp 127.0.0.1:1: connect: connection refused"
			if silent {
				reason = ""
			}
			if took := time.Since(begin); err == nil || err.Error() != want+reason || took < answerLimit || took > answerLimit+2*time.Second {
				t.Errorf("%v after %v, want %s", err, took, want+reason)
			}
			text, _ := os.ReadFile(shown.Name())
			if lines := strings.Split(string(text), "\n"); lines[0] != "waiting for 127.0.0.1:1, silent for 3s"+reason || len(lines) != 3 {
				t.Errorf("it says %q", lines)
			}
		})
	}
}

// TestServerAway checks that a command waits for a server that restarts, and that it ends if the server does not come
// back.
func TestServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newConnectivity("db")
		ctx, stop := p.limit(t.Context(), transfer.AwayLimit)
		defer stop()
		call := func(err error) { _ = p.wait(func() error { return err }) }
		for range 3 {
			call(errRefused)
			time.Sleep(transfer.AwayLimit - 2*time.Second)
			if text := p.String(); !strings.HasPrefix(text, "waiting for db, silent for 4m58s: ") {
				t.Errorf("it says %q", text)
			}
			call(nil) // the server is back
			if text := p.String(); text != "" || ctx.Err() != nil {
				t.Errorf("it says %q, %v", text, ctx.Err())
			}
		}
		call(io.EOF) // the end of a stream is an answer
		time.Sleep(10 * transfer.AwayLimit)
		if ctx.Err() != nil {
			t.Errorf("a command that asks for nothing ends with %v", context.Cause(ctx))
		}
		call(errRefused)
		time.Sleep(transfer.AwayLimit + 2*time.Second)
		if err := (errUnavailable{}); !errors.As(context.Cause(ctx), &err) || !strings.HasPrefix(err.Error(), "db has not answered for 5m") {
			t.Errorf("it ends with %v", context.Cause(ctx))
		}
	})
}

// TestInterruptImport checks that an interrupted import prints what was done, and that the same command continues the
// import. The command must exit with exitIncomplete.
func TestInterruptImport(t *testing.T) {
	_, address := startServer(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)"))
	client := connect(t, address)
	defer client.Close()
	dir := t.TempDir()
	// The file has the same row many times, so that the import takes long but the server stores little.
	if err := os.WriteFile(filepath.Join(dir, "t.tbl"), []byte(strings.Repeat("1|"+strings.Repeat("x", 1000)+"|\n", 300_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "import", "t.tbl", "--table", "T", "--parallel", "1", "--endpoint", address, "--database", crashDatabase)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), runMain+"=1")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for rows := int64(0); rows == 0; {
		if err := client.Single().Query(t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM T")).Do(func(r *spanner.Row) error { return r.Column(0, &rows) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	text := out.String()
	if cmd.ProcessState.ExitCode() != exitIncomplete || !strings.Contains(text, "crowfoot: interrupt signal received\nthe import into T is not complete: ") ||
		!strings.Contains(text, "the same command goes on, also when the file was corrected: ") || strings.Contains(text, "context") {
		t.Errorf("%v: %s", cmd.ProcessState, text)
	}
}
