package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"
)

// Settings say what a run measures, for how long, and on which server.
type Settings struct {
	Rows    int           `json:"rows"`            // in the table that the paths read or write
	Each    time.Duration `json:"each_ns"`         // measured time of each path at each number of clients, over all rounds
	Count   int           `json:"count,omitempty"` // operations of each path, over all rounds, in place of Each; 0 to use Each
	Rounds  int           `json:"rounds"`          // how many times the paths of an experiment take turns
	Clients []int         `json:"clients"`         // numbers of clients; each experiment runs once with each of them
	Rate    float64       `json:"rate_per_second"` // operations per second of all clients, in an open loop; 0 for a closed loop
	Keys    int           `json:"keys"`            // number of rows in a range read, or of scattered keys in a read
	Splits  int           `json:"splits"`          // number of splits from which the scattered keys of a read come
	Batches []int         `json:"batches"`         // numbers of rows per commit; the inserts run once with each of them
	// RTT is a round-trip time that the run adds between client and server to simulate a network. Half of it is added
	// in each direction.
	RTT time.Duration `json:"rtt_ns,omitempty"`
	// Study makes the run repeat the published studies of reads and of writes (package studies) as they were done. The
	// benchmark "access" then sends its calls without tags: first as fast as possible, and then at the rates of the
	// study. The benchmark "writes" then leaves out most paths that the study does not have.
	Study bool `json:"study,omitempty"`
	// Interval selects the tables of SPANNER_SYS that the run queries when it repeats the study of reads: the tables
	// with intervals of one minute, or those with intervals of ten minutes.
	Interval Interval `json:"interval,omitempty"`
	Endpoint
	// StatisticsWait is the longest time that the run waits at its end for the server's statistics of the last minute,
	// which appear only after that minute. If the run would have to wait longer than StatisticsWait, it does not wait
	// at all. If StatisticsWait is 0, the experiments also do not wait for the beginning of an interval of the
	// statistics.
	StatisticsWait time.Duration `json:"statistics_wait_ns"`

	// Control is the path of another executable of Crowfoot, usually an older one. A control server from this
	// executable answers the same requests turn by turn, on equal data, and the report compares the cost of both. ""
	// means no control server.
	Control string `json:"control,omitempty"`

	Outputs
}

// Endpoint identifies the server to measure.
type Endpoint struct {
	Address string `json:"endpoint,omitempty"` // HOST:PORT, without TLS; "" and a Database mean Cloud Spanner
	// Database is the name projects/P/instances/I/databases/D; "" stands for an embedded server.
	Database string `json:"database,omitempty"`
	// PID is the process ID of a server on this machine that the run did not start. 0 means unknown.
	PID int    `json:"pid,omitempty"`
	Dir string `json:"-"` // directory of the embedded server's data; "" for a temporary one
}

// Outputs say where a report is written.
type Outputs struct {
	Report   string    `json:"-"` // path of the HTML page to write; "" for none
	JSON     string    `json:"-"` // path of the JSON file to write; "" for none
	Out      io.Writer `json:"-"` // the result as text
	Progress io.Writer `json:"-"` // the progress of the run
}

// Defaults returns the settings of the published studies that the benchmarks repeat. For settings that the studies do
// not give, it returns values of our own.
func Defaults() Settings {
	return Settings{
		Rows:           100_000,
		Each:           10 * time.Second,
		Rounds:         20,
		Clients:        []int{1},
		Keys:           StudyKeys,
		Splits:         StudySplits,
		Batches:        []int{1, StudyBatch},
		Interval:       TenMinutes,
		StatisticsWait: 75 * time.Second,
		Outputs:        Outputs{Out: os.Stdout, Progress: os.Stderr},
	}
}

// MaxClients is the largest number of clients. It is far more than one machine can drive, so a larger number is a
// typing error.
const MaxClients = 10_000

// maxRTT is the largest value of RTT. It is far longer than any round trip on earth, so a larger value is a typing
// error.
const maxRTT = 10 * time.Second

// maxPID is Linux's PID_MAX_LIMIT.
const maxPID = 1 << 22

var databaseForm = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+/databases/[^/]+$`)

// UsageError is an error in the command line.
type UsageError struct{ error }

func UsageErrorf(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

func (e UsageError) Unwrap() error { return e.error }

// AsUsageError wraps an error in a UsageError. It returns nil if err is nil.
func AsUsageError(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

func (s Settings) Check() error {
	switch {
	case s.Rows < 1:
		return errors.New("--rows must be positive")
	case s.Each <= 0:
		return errors.New("--seconds must be positive")
	case s.Rounds < 1:
		return errors.New("--rounds must be positive")
	case len(s.Clients) == 0:
		return errors.New("--clients needs a number")
	case s.Count < 0 || s.Count > 0 && s.Count < s.Rounds*WarmUpShare:
		return fmt.Errorf("--count must be at least %d, %d for each of the rounds", s.Rounds*WarmUpShare, WarmUpShare)
	case s.Count > 0 && s.Rate > 0:
		return errors.New("--count is for a closed loop and does not go with --rate")
	case s.Control != "" && s.Database != "":
		return errors.New("--control is for the embedded server and does not go with --database")
	case s.RTT < 0 || s.RTT > maxRTT:
		return fmt.Errorf("--rtt must be from 0 to %v", maxRTT)
	case s.Rate < 0:
		return errors.New("--rate must not be negative")
	case s.Study && s.Rate > 0:
		return errors.New("--study has rates of its own and does not go with --rate")
	}
	for _, n := range s.Clients {
		if n < 1 || n > MaxClients {
			return fmt.Errorf("--clients must be from 1 to %d, not %d", MaxClients, n)
		}
	}
	return s.Endpoint.Check()
}

// CheckAccess checks the settings that only the benchmark "access" uses.
func (s Settings) CheckAccess() error {
	switch {
	case s.Keys < 1 || s.Keys > s.Rows:
		return errors.New("--keys must be positive and at most --rows")
	case s.Splits < 1 || s.Splits > s.Rows:
		return errors.New("--splits must be positive and at most --rows")
	case s.Keys*s.Splits > s.Rows:
		return errors.New("--rows must be at least --keys times --splits, so that scattered keys can differ")
	case s.Study && s.Interval.Length() == 0:
		return fmt.Errorf("--interval must be %s or %s", Minute, TenMinutes)
	case !s.Study && s.Interval != TenMinutes:
		return errors.New("--interval needs --study")
	}
	return nil
}

// CheckWrites checks the settings that only the benchmark "writes" uses.
func (s Settings) CheckWrites() error {
	if len(s.Batches) == 0 || slices.Min(s.Batches) < 1 {
		return errors.New("--batch needs positive numbers")
	}
	return nil
}

// CheckEmbedded returns an error if the settings name a server that the benchmark does not start itself.
func (s Settings) CheckEmbedded() error {
	if s.Database != "" {
		return errors.New("the benchmark needs the embedded server and takes no --database")
	}
	return nil
}

func (e Endpoint) Check() error {
	switch {
	case e.PID != 0 && e.Address == "":
		return errors.New("--pid needs --endpoint: it is the process of the server there")
	case e.PID < 0 || e.PID > maxPID:
		return fmt.Errorf("--pid must be a process, from 1 to %d", maxPID)
	case e.Address != "" && e.Database == "":
		return errors.New("--endpoint needs --database projects/P/instances/I/databases/D")
	case e.Database != "" && !databaseForm.MatchString(e.Database):
		return fmt.Errorf("--database must be projects/P/instances/I/databases/D, not %q", e.Database)
	case e.Database != "" && e.Dir != "":
		return errors.New("--dir is for the embedded server and does not go with --database")
	}
	return nil
}

// StudyKeys is the number of rows in a read of a range, and of keys in a read of scattered keys, in the published study
// of reads. StudySplits is the number of splits from which the scattered keys come.
const (
	StudyKeys   = 10
	StudySplits = 4
)

// StudyBatch is the number of rows in the larger commits of the published study of writes. Its smaller commits have one
// row.
const StudyBatch = 4

// WarmUpShare is the ratio of a path's measured time to its warm-up time.
const WarmUpShare = 10
