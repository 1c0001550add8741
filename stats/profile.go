package stats

import (
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// A Profile is the plan of one execution as JSON, with the work of each operator.
type Profile struct {
	Text    Text
	Tag     string // tag of the request
	Latency time.Duration
	End     time.Time
	JSON    string
}

// These constants say what each element of tally.sums means in the statistics of query profiles.
const (
	profileLatency = iota
	profileSums
)

// sampler chooses the executions to profile: the first of each minute and every profileEvery-th after it, but at most
// keepProfiles per minute.
type sampler struct {
	calls    atomic.Uint32
	profiled atomic.Uint32 // number of executions that were chosen in this minute
}

const profileEvery = 1 << 10

// WantProfile reports whether to profile the execution that is about to begin. If it returns true, the caller later
// passes the profile to the method Profile.
func (c *Collector) WantProfile() bool {
	if c.cfg.Off {
		return false
	}
	n := c.sampler.calls.Add(1)
	if n != 1 && n%profileEvery != 0 {
		return false
	}
	return c.sampler.profiled.Add(1) <= keepProfiles
}

func (s *sampler) begin() {
	s.calls.Store(0)
	s.profiled.Store(0)
}

// Profile records the profile of an execution. For each interval, only the profiles of the slowest executions are
// stored. Profile ignores a profile that is longer than maxProfile. It does not cut such a profile, because a part of a
// plan would be useless.
func (c *Collector) Profile(p *Profile) {
	if len(p.JSON) > maxProfile {
		return
	}
	s := c.enter()
	defer s.mu.Unlock()
	b := s.at(c, p.End).board(profiles)
	one := subject{fingerprint: fingerprintOf(Tag(p.Tag), p.Text.Fingerprint), name: p.JSON}
	key := b.family.key(&one)
	t := b.tallies[key]
	if t == nil {
		t = b.add(key, one)
	}
	t.sums[profileLatency] = max(t.sums[profileLatency], int64(p.Latency))
}

var profileColumns = []column{
	intervalEnd,
	fingerprintColumn("TEXT_FINGERPRINT"),
	sumSeconds("LATENCY_SECONDS", profileLatency),
	text("QUERY_PROFILE", func(s *subject) string { return s.name }),
}

var tableOperationColumns = []column{
	intervalEnd,
	nameColumn("TABLE_NAME"),
	{name: "READ_QUERY_COUNT", typ: value.Int64Type, of: func(r row) value.Value { return value.OfInt64(r.sums[OpQuery] + r.sums[OpRead]) }},
	sum("WRITE_COUNT", int(OpWrite)),
	sum("DELETE_COUNT", int(OpDelete)),
}

var columnOperationColumns = []column{
	intervalEnd,
	nameColumn("TABLE_NAME"),
	tagColumn("COLUMN_NAME"),
	sum("QUERY_COUNT", int(OpQuery)),
	sum("READ_COUNT", int(OpRead)),
	sum("WRITE_COUNT", int(OpWrite)),
	{name: "IS_QUERY_CACHE_MEMORY_CAPPED", typ: value.BoolType, of: func(row) value.Value { return value.OfBool(false) }},
}
