package retrieval

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestWorker checks that a worker reports the libraries that it has found and those that it lacks, and that ask returns
// the number of rows or the error that the worker answers. If the worker ends, or if the context ends before the worker
// has answered, ask must return an error.
func TestWorker(t *testing.T) {
	const script = `printf 'a library says hello\n'
printf 'ready\tfound 1.2\tlacking\n' >&3
while read request; do
  case $request in
    good) printf '100%% [====] '; printf 'rows\t7\n' >&3 ;;
    bad) printf 'error\tno such file\n' >&3 ;;
    die) echo 'out of memory' >&2; exit 1 ;;
    silent) ;;
  esac
done`
	start := func() *worker {
		w, err := startWorker(t.Context(), "sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := start()
	if !w.can("found") || w.can("lacking") || len(w.lacking) != 1 {
		t.Errorf("the worker has %v and lacks %v", w.has, w.lacking)
	}
	if rows, err := w.ask(t.Context(), "good"); rows != 7 || err != nil {
		t.Errorf("read %d rows, %v", rows, err)
	}
	for request, want := range map[string]string{"bad": "bad: no such file", "die": "out of memory"} {
		if _, err := w.ask(t.Context(), request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", request, err, want)
			continue
		}
		if request == "die" {
			w.stop()
			w = start()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.ask(ctx, "silent"); !errors.Is(err, context.Canceled) {
		t.Errorf("a worker that does not answer: %v", err)
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if _, err := startWorker(t.Context(), "sh", "-c", "echo nothing >&2"); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a program that is no worker: %v", err)
	}
	var none *worker
	if none.can("found") || none.stop() != nil {
		t.Error("a worker that was not started has libraries, or does not stop")
	}
}
