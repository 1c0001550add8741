package columnar

import (
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestConcurrent checks that each Reader sees all rows while chunks are written anew again and again. At the end, the
// store must contain only the blobs of the last chunks.
func TestConcurrent(t *testing.T) {
	h, c, read := someRows(t, vfs.NewMem(), 50)
	defer h.close()
	want, err := h.fromRows(read)
	if err != nil {
		t.Fatal(err)
	}
	src := h.source(read.Table, nil, h.now)
	c.maxRows = 7
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				got, err := h.fromCopy(c, read, (*Reader).Release)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%d rows of %d, %v", len(got), len(want), err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 30 {
		for _, ch := range c.Chunks() {
			if _, err := c.Write(t.Context(), src, ch.Span); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Renew(t.Context(), src, h.now); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
	h.check(t)
}
