package fn

import (
	"strings"
	"sync/atomic"
)

// memo keeps what a call has made of an argument, such as a compiled pattern, a time zone or a path, together with the text of the
// argument, which mostly is the same for all rows. It belongs to one Scalar and may be used by many goroutines.
type memo[T any] struct {
	last atomic.Pointer[memoEntry[T]]
}

type memoEntry[T any] struct {
	key   string
	value T
}

func (m *memo[T]) get(key string, compile func(string) (T, error)) (T, error) {
	if e := m.last.Load(); e != nil && e.key == key {
		return e.value, nil
	}
	key = strings.Clone(key) // the text may be a part of something large, which would be kept with it
	made, err := compile(key)
	if err == nil {
		m.last.Store(&memoEntry[T]{key, made})
	}
	return made, err
}
