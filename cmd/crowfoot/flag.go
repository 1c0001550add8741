package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/memory"
)

// seconds is the value of a flag with a duration in seconds: 2.5, or 2.5s.
type seconds time.Duration

// maxSeconds is the greatest value of a flag in seconds: a day.
const maxSeconds = 24 * 60 * 60

func (s *seconds) String() string {
	return strconv.FormatFloat(time.Duration(*s).Seconds(), 'g', -1, 64)
}

func (s *seconds) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "s"), 64)
	if err != nil || v < 0 || v > maxSeconds {
		return fmt.Errorf("want seconds from 0 to %d", int(maxSeconds))
	}
	*s = seconds(v * float64(time.Second))
	return nil
}

func (*seconds) Type() string { return "seconds" }

// numbers is the value of a flag with a list of numbers: 1,8,32.
type numbers []int

func (n *numbers) String() string {
	var parts []string
	for _, v := range *n {
		parts = append(parts, strconv.Itoa(v))
	}
	return strings.Join(parts, ",")
}

func (n *numbers) Set(text string) error {
	*n = nil
	for _, part := range strings.Split(text, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return errors.New("want numbers like 1,8,32")
		}
		*n = append(*n, v)
	}
	return nil
}

func (*numbers) Type() string { return "numbers" }

// size is the value of a flag with a size in bytes: 2GiB, 512MiB, 1.5GiB, or a number of bytes. 0 means that the flag
// was not given.
type size int64

// sizeUnits are the units of sizes. The unit of a size is the first one in this list whose name is at the end of the
// size's text. The empty name comes last, because every text ends with it. GB, MB and G also mean powers of 1024,
// because people write them in that sense.
var sizeUnits = []struct {
	name  string
	bytes float64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"", 1}}

func (s *size) String() string {
	switch n := int64(*s); {
	case n == 0:
		return ""
	case n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "MiB"
	default:
		return strconv.FormatInt(n, 10)
	}
}

func (s *size) Set(text string) error {
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || v*unit.bytes < memory.MinBytes || v*unit.bytes > 1<<50 {
			break
		}
		*s = size(v * unit.bytes)
		return nil
	}
	least := size(memory.MinBytes)
	return fmt.Errorf("want a size of at least %v, such as 2GiB: a number of bytes, or with the unit MiB, GiB or TiB", &least)
}

func (*size) Type() string { return "size" }

// level is the value of a flag with a log level. Messages below this level are not logged.
type level slog.Level

var logLevels = []string{"error", "warn", "info", "debug"}

func (l *level) String() string { return strings.ToLower(slog.Level(*l).String()) }

func (l *level) Set(text string) error {
	if !slices.Contains(logLevels, strings.ToLower(text)) {
		return fmt.Errorf("want one of %s", strings.Join(logLevels, ", "))
	}
	return (*slog.Level)(l).UnmarshalText([]byte(text))
}

func (*level) Type() string { return "level" }

// wrongValue returns the error for a flag whose value cannot be parsed. The value comes from the flag or the
// environment variable with the given name.
func wrongValue(f *pflag.Flag, name, value string, err error) error {
	if f.Value.Type() == "bool" {
		err = errors.New("want true or false")
	}
	return usageErrorf("%s is %q: %w", name, value, err)
}
