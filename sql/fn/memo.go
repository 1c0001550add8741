package fn

import (
	"strings"
	"sync/atomic"
)

// memo keeps what was made of the last text that a call saw: a compiled pattern, a time zone, a path. Such arguments are mostly the
// same for all rows. It belongs to one Scalar and may be used by many goroutines.
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
	key = strings.Clone(key) // whoever owns the text's memory may be large
	made, err := compile(key)
	if err == nil {
		m.last.Store(&memoEntry[T]{key, made})
	}
	return made, err
}
