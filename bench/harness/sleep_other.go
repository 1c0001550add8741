//go:build !linux

package harness

import "time"

func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }
