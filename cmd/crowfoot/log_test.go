package main

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
)

// TestErrorsInLog checks that an error is logged as its text, without the stack trace that errors of the storage engine
// print for the format %+v.
func TestErrorsInLog(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr := os.Stderr
		os.Stderr = w
		log := newLog(os.Stderr, slog.LevelInfo, asJSON)
		os.Stderr = stderr
		log.Error("flush", slog.Any("error", errors.New("no space")))
		w.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if line := string(text); !strings.Contains(line, "no space") || strings.Contains(line, "_test.go") || strings.Contains(line, "goexit") {
			t.Errorf("logged: %s", line)
		}
	}
}
