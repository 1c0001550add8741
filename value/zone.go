package value

import (
	"fmt"
	"strings"
	"sync"
	"time"

	// Where the machine has no time zone database, this embedded copy serves.
	_ "time/tzdata"
)

// DefaultZone is the name of the time zone of a database that does not set the option default_time_zone.
const DefaultZone = "America/Los_Angeles"

// maxZoneOffset is the largest offset from UTC, in seconds, of a zone whose name is an offset.
const maxZoneOffset = 14 * 3600

// zones caches the named zones that were loaded. It stays small, because there are only about 600 names.
var zones sync.Map // string to *time.Location

// LoadZone returns the time zone with this name. The name is in the time zone database, where case matters, or is an
// offset: [UTC](+|-)H[H][[:]M[M]].
func LoadZone(name string) (*time.Location, error) {
	if zone, ok := parseOffset(name); ok {
		return zone, nil
	}
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	// LoadLocation accepts "" for UTC and "Local" for the time zone of the machine. SQL has no time zones with these
	// names.
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("invalid time zone: %s", quoted(name))
	}
	zones.Store(name, zone)
	return zone, nil
}

func parseOffset(name string) (zone *time.Location, ok bool) {
	s := scanner{strings.TrimPrefix(name, "UTC")}
	neg := strings.HasPrefix(s.rest, "-")
	if !s.byte("+-") {
		return nil, false
	}
	hours, minutes := s.number(1, 2), 0
	if s.rest != "" {
		s.byte(":")
		minutes = s.number(1, 2)
	}
	offset := hours*3600 + minutes*60
	if s.rest != "" || hours < 0 || minutes < 0 || minutes > 59 || offset > maxZoneOffset {
		return nil, false
	}
	if neg {
		offset = -offset
	}
	return time.FixedZone(name, offset), true
}

// InstantOf returns the time, in seconds since 1970-01-01 UTC, at which clocks in zone show the local time local. local
// is given as seconds from 1970-01-01 00:00:00 on the same clocks. If there are two such times, InstantOf returns the
// earlier one. If there is none, because clocks were set forward over that local time, InstantOf uses the offset that
// was valid before.
func InstantOf(local int64, zone *time.Location) int64 {
	const margin = 36 * 3600 // seconds; more than the offset of any zone from UTC
	before, after := offsetAt(local-margin, zone), offsetAt(local+margin, zone)
	if before == after || offsetAt(local-before, zone) == before || offsetAt(local-after, zone) != after {
		return local - before
	}
	return local - after
}

func offsetAt(seconds int64, zone *time.Location) int64 {
	_, offset := time.Unix(seconds, 0).In(zone).Zone()
	return int64(offset)
}

// ZoneOffset returns zone's offset from UTC at a time, in seconds, truncated to whole minutes. GoogleSQL prints and
// extracts timestamps with such offsets, even for times when the zone's offset was not a whole number of minutes.
func ZoneOffset(seconds int64, zone *time.Location) int64 {
	return offsetAt(seconds, zone) / 60 * 60
}

// AppendTimestampIn appends a timestamp as CAST to STRING prints it: YYYY-MM-DD HH:MM:SS[.F]+HH[:MM]. The fraction has
// groups of three digits.
func AppendTimestampIn(dst []byte, seconds int64, nanos int32, zone *time.Location) []byte {
	offset := ZoneOffset(seconds, zone)
	local := int(seconds + offset)
	days := floorDiv(local, secondsPerDay)
	dst = append(AppendDate(dst, int32(days)), ' ')
	dst = appendClock(dst, local-days*secondsPerDay)
	dst = appendFractionGroups(dst, uint32(nanos))
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	dst = appendTwoDigits(append(dst, sign), int(offset/3600))
	if minutes := int(offset / 60 % 60); minutes != 0 {
		dst = appendTwoDigits(append(dst, ':'), minutes)
	}
	return dst
}
