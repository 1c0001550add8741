package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"2GiB": 2 << 30, "1.5GiB": 3 << 29, "512MiB": 512 << 20, "3G": 3 << 30, "600MB": 600 << 20, "1073741824": 1 << 30} {
		var s size
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%s is %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "1KiB", "511MiB", "-2GiB", "much", "1e30GiB", "GiB"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
}
