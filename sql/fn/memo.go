package fn

import (
	"strings"
	"sync/atomic"
)

// Memo keeps the last text of an argument and the value compiled from it, such as a pattern, a time zone or a path.
// An argument usually has the same text for all rows, so the text is compiled only once. A Memo belongs to one Scalar.
// Many goroutines may use it.
type Memo[T any] struct {
	last atomic.Pointer[memoEntry[T]]
}

type memoEntry[T any] struct {
	key   string
	value T
}

func (m *Memo[T]) Get(key string, compile func(string) (T, error)) (T, error) {
	if e := m.last.Load(); e != nil && e.key == key {
		return e.value, nil
	}
	key = strings.Clone(key) // the text may be part of a large value, which would then stay allocated
	made, err := compile(key)
	if err == nil {
		m.last.Store(&memoEntry[T]{key, made})
	}
	return made, err
}
