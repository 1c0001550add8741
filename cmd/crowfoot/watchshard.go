package main

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/civil"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/watch"
)

// shardSettings select the rows to watch by the values of a column.
type shardSettings struct {
	column, values, kind, interval string
}

func (s *shardSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.column, "shard-column", "", "`COLUMN` that spreads the index on the commit timestamp: rows are found in which it is not NULL, or has one of --shard-values")
	flags.StringVar(&s.values, "shard-values", "", "`LIST` of values of --shard-column, such as -18..18 or a,b,c; watchers with different ones share the work")
	flags.StringVar(&s.kind, "shard-type", "INT64", "`TYPE` of --shard-values: "+strings.Join(slices.Sorted(maps.Keys(shardTypes)), ", "))
	flags.StringVar(&s.interval, "shard-interval", "", "`INTERVAL` by whose hash writers set --shard-column: "+strings.Join(slices.Sorted(maps.Keys(watch.Intervals())), ", "))
}

// provider returns the shard provider that the flags describe, or nil if they describe none.
func (s *shardSettings) provider() (watch.ShardProvider, error) {
	switch {
	case s.column == "" && (s.values != "" || s.interval != ""):
		return nil, usageErrorf("--shard-values and --shard-interval need --shard-column COLUMN")
	case s.values != "" && s.interval != "":
		return nil, usageErrorf("--shard-values and --shard-interval contradict each other: leave one out")
	case s.interval != "":
		interval, ok := watch.Intervals()[strings.ToUpper(s.interval)]
		if !ok {
			return nil, usageErrorf("--shard-interval is %q: want one of %s", s.interval, strings.Join(slices.Sorted(maps.Keys(watch.Intervals())), ", "))
		}
		return watch.TimeShard(s.column, interval), nil
	case s.values != "":
		list, err := s.list()
		if err != nil {
			return nil, usageErrorf("--shard-values is %q: %w", s.values, err)
		}
		return watch.FixedShard(s.column, list)
	case s.column != "":
		return watch.NotNullShard(s.column), nil
	}
	return nil, nil
}

// shardTypes maps each type of shard values to a function that parses a list of them.
var shardTypes = map[string]func(texts []string) (any, error){
	"BOOL":      listOf(strconv.ParseBool),
	"BYTES":     listOf(base64.StdEncoding.DecodeString),
	"DATE":      listOf(civil.ParseDate),
	"FLOAT64":   listOf(func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }),
	"INT64":     listOf(func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }),
	"STRING":    listOf(func(text string) (string, error) { return text, nil }),
	"TIMESTAMP": listOf(func(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) }),
}

// listOf returns a function that parses a list of values. That function returns the value if the list has one element,
// and otherwise a slice.
func listOf[T any](read func(text string) (T, error)) func(texts []string) (any, error) {
	return func(texts []string) (any, error) {
		var list []T
		for _, text := range texts {
			v, err := read(text)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		if len(list) == 1 {
			return list[0], nil
		}
		return list, nil
	}
}

// maxShards is how many values a range of shard values can have.
const maxShards = 10_000

func (s *shardSettings) list() (any, error) {
	read, ok := shardTypes[strings.ToUpper(s.kind)]
	if !ok {
		return nil, fmt.Errorf("--shard-type is %q, want one of %s", s.kind, strings.Join(slices.Sorted(maps.Keys(shardTypes)), ", "))
	}
	var texts []string
	for _, text := range strings.Split(s.values, ",") {
		first, last, isRange := strings.Cut(text, "..")
		if !isRange || strings.ToUpper(s.kind) != "INT64" {
			texts = append(texts, text)
			continue
		}
		low, lowErr := strconv.ParseInt(first, 10, 64)
		high, highErr := strconv.ParseInt(last, 10, 64)
		if lowErr != nil || highErr != nil || high < low || uint64(high-low) >= maxShards {
			return nil, fmt.Errorf("want a range such as -18..18, of at most %d values", maxShards)
		}
		for n := low; n <= high; n++ {
			texts = append(texts, strconv.FormatInt(n, 10))
		}
	}
	return read(texts)
}
