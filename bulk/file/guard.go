package file

import (
	"fmt"
	"io"
	"regexp"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/arrowmessage"
)

// guard calls a library that reads a part of a file, which may be damaged, and turns a panic of it into an error that names the part.
func guard(part string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is damaged: %s", part, inWords(fmt.Sprint(p)))
		}
	}()
	if err = f(); err == nil || err == io.EOF {
		return err
	}
	if text := err.Error(); inWords(text) != text {
		return fmt.Errorf("%s: %s", part, inWords(text))
	}
	return fmt.Errorf("%s: %w", part, err)
}

// ofRuntime is a panic of Go's runtime, which libraries put into errors, too.
var ofRuntime = regexp.MustCompile(`(unknown error while reading: )?runtime error: .*`)

// inWords says what a panic of Go's runtime means for a file.
func inWords(text string) string {
	return ofRuntime.ReplaceAllString(text, "a length or an offset in it leads out of its bounds")
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

// atMost lets what is read of a file take so many bytes.
func atMost(most int64) arrowmessage.Charge {
	taken := int64(0)
	return func(n int64) error {
		if taken+n > most {
			return fmt.Errorf("it asks for %d bytes", taken+n)
		}
		taken += n
		return nil
	}
}
