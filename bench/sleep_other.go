//go:build !linux

package bench

import "time"

func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }
