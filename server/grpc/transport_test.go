package grpc

import (
	"testing"

	"google.golang.org/grpc/metadata"
)

// TestTimingCostsNothingUnasked: to check whether a request asks for server-timing allocates nothing.
func TestTimingCostsNothingUnasked(t *testing.T) {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("user-agent", "x", "x-goog-request-params", "session=s"))
	if n := testing.AllocsPerRun(100, func() {
		if asksTiming(ctx) {
			t.Error("nobody asked")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
