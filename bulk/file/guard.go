package file

import (
	"fmt"
	"io"
	"regexp"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/arrowmessage"
)

// guard calls f, which reads a part of a file with a library. If the library panics, because the file is damaged,
// guard returns an error that names the part.
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

// ofRuntime matches the text of a panic of Go's runtime. Such a text may also be in an error, because libraries turn
// some panics into errors.
var ofRuntime = regexp.MustCompile(`(unknown error while reading: )?runtime error: .*`)

// inWords replaces the text of a panic of Go's runtime by a message that says what is wrong in the file.
func inWords(text string) string {
	return ofRuntime.ReplaceAllString(text, "a length or an offset in it leads out of its bounds")
}

// largestBuffer is the largest number of bytes that one allocation for a columnar file may have. A damaged file may
// request any number.
const largestBuffer = 1 << 30

// bounded is an allocator that panics if a file requests more than largestBuffer. It must be used within guard, which
// turns the panic into an error.
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

// atMost returns a Charge that allows at most the given number of bytes in total.
func atMost(most int64) arrowmessage.Charge {
	used := int64(0)
	return func(n int64) error {
		if used+n > most {
			return fmt.Errorf("it asks for %d bytes", used+n)
		}
		used += n
		return nil
	}
}
