package harness

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestDelayedConn checks that bytes arrive complete, in order, and no earlier than half of a round trip after they
// were sent, in both directions. Close must end both directions.
func TestDelayedConn(t *testing.T) {
	const half = 20 * time.Millisecond
	client, server := net.Pipe()
	d := newDelayedConn(client, half)
	sent := bytes.Repeat([]byte("0123456789"), 20_000)
	for _, way := range []struct {
		from io.Writer
		to   io.Reader
	}{{d, server}, {server, d}} {
		began := time.Now()
		go func() {
			for i := 0; i < len(sent); i += 50_000 {
				way.from.Write(sent[i : i+50_000])
			}
		}()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(way.to, got[:1]); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < half { // a slow machine can only increase this time
			t.Errorf("the first byte took %v, less than %v", took, half)
		}
		if _, err := io.ReadFull(way.to, got[1:]); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%v, and what came is what was sent: %v", err, bytes.Equal(got, sent))
		}
	}
	d.Close()
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
		t.Errorf("reading after Close: %v", err)
	}
	if _, err := d.Write([]byte{1}); !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing after Close: %v", err)
	}
}
