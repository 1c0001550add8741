package file

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// guard calls a library that reads a file which may be damaged, and turns a panic of it into an error that names the file.
func guard(name string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is damaged: %v", name, p)
		}
	}()
	if err = f(); err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// largestBuffer is the most bytes that a file of columns may ask for at once: a damaged one may ask for anything.
const largestBuffer = 1 << 30

// bounded is an allocator that panics, within guard, where a file asks for too much.
type bounded struct{ memory.Allocator }

func (b bounded) Allocate(size int) []byte {
	b.check(size)
	return b.Allocator.Allocate(size)
}

func (b bounded) Reallocate(size int, old []byte) []byte {
	b.check(size)
	return b.Allocator.Reallocate(size, old)
}

func (b bounded) check(size int) {
	if size < 0 || size > largestBuffer {
		panic(fmt.Sprintf("it asks for a buffer of %d bytes", size))
	}
}

func newAllocator() memory.Allocator { return bounded{memory.DefaultAllocator} }
