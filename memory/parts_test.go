package memory

import "testing"

func TestDefault(t *testing.T) {
	for machine, want := range map[int64]int64{0: unknownBytes, 256 << 20: MinBytes, 8 << 30: 4 << 30} {
		if got := Default(machine); got != want {
			t.Errorf("on a machine with %d bytes the default is %d, want %d", machine, got, want)
		}
	}
}

// TestDivide checks that Divide leaves a tenth of the memory unused, even if the process has only MinBytes. Requests
// must get at least as many bytes as the table says.
func TestDivide(t *testing.T) {
	for total, requests := range map[int64]int64{MinBytes: 100 << 20, 2 << 30: 650 << 20, 16 << 30: 5 << 30} {
		p := Divide(total)
		if spare := total - p.BlockCache - p.Heap - EngineBytes; spare != total/10 {
			t.Errorf("of %d bytes %d are left", total, spare)
		}
		if p.Requests < requests || p.Requests > p.Heap {
			t.Errorf("of %d bytes requests get %d", total, p.Requests)
		}
	}
}
