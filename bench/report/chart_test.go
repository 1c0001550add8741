package report

import (
	"reflect"
	"testing"
)

func TestTicks(t *testing.T) {
	if got, want := (axis{low: 0, high: 8716}).ticks(6), []float64{0, 2000, 4000, 6000, 8000}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := (axis{low: 10, high: 1000, logarithms: true}).ticks(6), []float64{10, 100, 1000}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
