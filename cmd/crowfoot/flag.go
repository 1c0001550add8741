package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// seconds is a flag with a duration in seconds: 2.5, or 2.5s.
type seconds time.Duration

// maxSeconds is a day.
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

// numbers is a flag with a list of numbers: 1,8,32.
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
