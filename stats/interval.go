package stats

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
)

// A resolution is a length of intervals. Intervals are aligned to the wall clock.
type resolution struct {
	name   string // part of stored keys, so it never changes
	suffix string // end of the names of its tables
	length time.Duration
	// retention is how long an interval is kept after its end:
	// https://cloud.google.com/spanner/docs/introspection/query-statistics#data_retention.
	retention time.Duration
}

// The resolutions, from short to long. One-minute intervals are recorded. Intervals of ten minutes are computed from
// those of a minute, and hours from intervals of ten minutes.
var resolutions = [...]resolution{
	{"1", "_MINUTE", time.Minute, 6 * time.Hour},
	{"10", "_10MINUTE", 10 * time.Minute, 4 * 24 * time.Hour},
	{"60", "_HOUR", time.Hour, 30 * 24 * time.Hour},
}

const (
	byMinute = iota
	byTenMinutes
	byHour
)

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// endOf returns the time at which a minute ends.
func endOf(minute int64) time.Time { return time.Unix((minute+1)*60, 0) }

// ends returns the end of the newest interval of the resolution that is over at t.
func (r *resolution) ends(t time.Time) time.Time {
	length := int64(r.length / time.Second)
	return time.Unix(t.Unix()/length*length, 0)
}

// around returns the end of the interval of the resolution that contains the shorter interval ending at t.
func (r *resolution) around(t time.Time) time.Time {
	length := int64(r.length / time.Second)
	return time.Unix((t.Unix()+length-1)/length*length, 0)
}

// keptUnstored is how long the statistics of ended minutes stay in memory while the store takes no writes. They are
// stored when the store takes writes again.
const keptUnstored = time.Hour

// Advance does the work that is due: it stores intervals that have ended, computes the longer ones, deletes old ones,
// and stores a copy of the current minute (flush). Reads of the tables call Advance first, so that their rows depend
// only on the clock. While the store takes no writes, Advance only forgets minutes older than keptUnstored.
func (c *Collector) Advance() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Clock()
	if c.cfg.Store.Writable() != nil {
		c.forgetUnstored(minuteOf(now.Add(-keptUnstored)))
		return nil
	}
	err := c.advance(now)
	if now.Sub(c.flushed) >= flushInterval {
		err = errors.Join(err, c.flush(now, kv.Batch.CommitNoSync))
	}
	return err
}

func (c *Collector) advance(now time.Time) error {
	if !c.recovered {
		left, err := c.loadOpen()
		if err != nil {
			return err
		}
		if left != nil {
			c.setAside(left)
		}
		c.recovered = true
	}
	last := minuteOf(now) - 1
	anew := last > c.past.Load()
	if anew {
		c.past.Store(last)
		c.sampler.begin()
	}
	sets := c.ended(last)
	if anew {
		sets = c.sampleSplits(sets, last)
	}
	if err := c.closeMinutes(sets); err != nil {
		return err
	}
	if err := c.sampleSizes(now); err != nil {
		return err
	}
	return c.rollUp(now)
}

// ended removes the sets of all minutes up to the minute in the parameter last from the shards and from c.aside, and
// returns them.
func (c *Collector) ended(last int64) []*set {
	var list []*set
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		if s.open != nil && s.open.minute <= last {
			list = append(list, s.open)
			s.open = nil
		}
		s.mu.Unlock()
	}
	c.asideMu.Lock()
	defer c.asideMu.Unlock()
	later := c.aside[:0]
	for _, s := range c.aside {
		if s.minute <= last {
			list = append(list, s)
		} else {
			later = append(later, s)
		}
	}
	clear(c.aside[len(later):])
	c.aside = later
	return list
}

// forgetUnstored drops the sets that wait to be stored and whose minutes are before the minute in the parameter first.
func (c *Collector) forgetUnstored(first int64) {
	c.asideMu.Lock()
	defer c.asideMu.Unlock()
	c.aside = slices.DeleteFunc(c.aside, func(s *set) bool { return s.minute < first })
}

// closeMinutes merges the sets of each minute and stores the results in one batch. This batch also deletes the copy of
// the unfinished minute that the method flush has stored. Otherwise a restart would load that copy and count the minute
// twice.
func (c *Collector) closeMinutes(sets []*set) error {
	if len(sets) == 0 {
		return nil
	}
	minutes := map[int64]*set{}
	for _, s := range sets {
		m := minutes[s.minute]
		if m == nil {
			m = &set{minute: s.minute}
			minutes[s.minute] = m
		}
		m.merge(s)
	}
	if err := c.storeMinutes(minutes); err != nil {
		for _, m := range minutes {
			c.setAside(m) // so that the next call of closeMinutes tries again to store this minute
		}
		return fmt.Errorf("store statistics: %w", err)
	}
	return nil
}

func (c *Collector) storeMinutes(minutes map[int64]*set) error {
	b := c.cfg.Store.NewBatch()
	defer b.Close()
	for _, m := range minutes {
		for i, board := range m.boards {
			if board == nil {
				continue
			}
			if err := c.putMinute(b, i, endOf(m.minute), board); err != nil {
				return err
			}
		}
	}
	if err := b.Delete(c.openKey()); err != nil {
		return err
	}
	return b.Commit()
}

// putMinute adds the record of a minute to a batch. If the clock was set back, the store may already have that minute;
// then putMinute adds the stored record to the new one.
func (c *Collector) putMinute(b kv.Batch, family int, end time.Time, board *board) error {
	err := c.each(byMinute, family, end.Add(-time.Second), end, func(_ time.Time, r record) error {
		board.mergeRecord(r)
		return nil
	})
	if err != nil {
		return err
	}
	return b.Put(c.key(byMinute, family, end), board.closed().encode(families[family]))
}

// rollUp computes the intervals of ten minutes and of an hour that have ended.
func (c *Collector) rollUp(now time.Time) error {
	for i := byTenMinutes; i < len(resolutions); i++ {
		end := resolutions[i].ends(now)
		if c.rolledUp[i] == end.Unix() {
			continue
		}
		for f := range families {
			if err := c.rollUpFamily(i, f, end); err != nil {
				return fmt.Errorf("make intervals of %v: %w", resolutions[i].length, err)
			}
		}
		if i == byHour {
			if err := c.prune(now); err != nil {
				return err
			}
		}
		c.rolledUp[i] = end.Unix()
	}
	return nil
}

// rollUpFamily computes the intervals of one family and one resolution that end after the newest stored interval and
// not after the time in the parameter end. If storing fails, the next call computes the same intervals again from the
// stored shorter ones.
func (c *Collector) rollUpFamily(resolution, family int, end time.Time) error {
	if family == tableSizes {
		return nil // table sizes are sampled once an hour, so there are no shorter intervals to add up
	}
	from, err := c.newest(resolution, family)
	if err != nil {
		return err
	}
	b := c.cfg.Store.NewBatch()
	defer b.Close()
	var sum *board
	var until time.Time // end of the interval whose sum is being computed
	finish := func() error {
		if sum == nil {
			return nil
		}
		return b.Put(c.key(resolution, family, until), sum.closed().encode(families[family]))
	}
	err = c.each(resolution-1, family, from, end, func(at time.Time, r record) error {
		if whole := resolutions[resolution].around(at); !whole.Equal(until) {
			if err := finish(); err != nil {
				return err
			}
			sum, until = newBoard(families[family]), whole
		}
		if f := families[family]; f.peaks {
			r.tallies = slices.DeleteFunc(r.tallies, func(t *tally) bool { return f.weight(t) < f.longerFrom })
		}
		sum.mergeRecord(r)
		return nil
	})
	if err = errors.Join(err, finish()); err != nil || b.Len() == 0 || sum == nil {
		return err
	}
	return b.Commit()
}

// flush stores a copy of the current minute's statistics, so that a crash of the process loses at most the counts since
// the last flush.
func (c *Collector) flush(now time.Time, commit func(kv.Batch) error) error {
	c.flushed = now
	open, dirty := c.copyOpen()
	if !dirty {
		return nil
	}
	b := c.cfg.Store.NewBatch()
	defer b.Close()
	if err := b.Put(c.openKey(), open.encode()); err != nil {
		return err
	}
	if err := commit(b); err != nil {
		return fmt.Errorf("flush statistics: %w", err)
	}
	return nil
}

// copyOpen returns a set with the current minute's counts from all shards. dirty says whether something was recorded
// since the last flush.
func (c *Collector) copyOpen() (open *set, dirty bool) {
	open = new(set)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		dirty = dirty || s.dirty
		s.dirty = false
		if s.open != nil {
			open.add(s.open)
		}
		s.mu.Unlock()
	}
	c.asideMu.Lock()
	defer c.asideMu.Unlock()
	for _, s := range c.aside {
		open.add(s)
	}
	return open, dirty
}

// add adds another set to s. The caller may still use the other set afterwards.
func (s *set) add(o *set) {
	o.addOperations()
	s.minute = max(s.minute, o.minute)
	for i, b := range o.boards {
		if b == nil {
			continue
		}
		sum := s.board(i)
		sum.rest.absorb(&b.rest)
		for _, t := range b.tallies {
			one := tally{subject: t.subject}
			one.absorb(t)
			sum.mergeTally(&one)
		}
	}
}
