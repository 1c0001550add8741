package stats

import (
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// TxnOutcome says how an attempt of a transaction ended.
type TxnOutcome uint8

const (
	Committed          TxnOutcome = iota
	Aborted                       // aborted at its commit
	FailedPrecondition            // the commit failed with FAILED_PRECONDITION
	CommitFailed                  // the commit failed with another error
	Abandoned                     // rolled back or abandoned without an attempt to commit
	AbortedEarly                  // aborted before an attempt to commit
)

// TxnIsolation is a combination of isolation level and lock mode that statistics count separately.
type TxnIsolation uint8

const (
	SerializablePessimistic TxnIsolation = iota
	SerializableOptimistic
	RepeatableReadOptimistic
)

// A Transaction is one attempt to run a read-write transaction.
type Transaction struct {
	Footprint *Footprint
	Tag       string // tag of the transaction
	Outcome   TxnOutcome
	Isolation TxnIsolation
	// Retry says that the attempt retries one that was aborted.
	Retry bool

	End           time.Time
	TotalLatency  time.Duration // from the first operation to the commit or abort
	CommitLatency time.Duration
	Participants  int64
	Bytes         int64 // written bytes
}

// Indexes of tally.sums in the statistics of transactions. Averages are sums divided by the number of attempts to
// commit (txnCommits). The distribution of latencies and txnAborts include transactions that never tried to commit:
// https://cloud.google.com/spanner/docs/introspection/transaction-statistics#table_schema.
const (
	txnAttempts = iota
	txnCommits
	txnFailedPreconditions
	txnAborts
	txnRetries
	txnParticipants
	txnTotalLatency
	txnCommitLatency
	txnBytes
	txnIsolation // the first of three sums, each of which counts the attempts with one TxnIsolation
	txnSums      = txnIsolation + 3
)

func txnWeight(t *tally) int64 { return t.sums[txnTotalLatency] }

func commits(t *tally) int64 { return t.sums[txnCommits] }

// Transaction counts one attempt of a transaction, which x describes. The caller may use x and x.Footprint again when
// Transaction has returned.
func (c *Collector) Transaction(x *Transaction) {
	if c.cfg.Off {
		return
	}
	tag := Tag(x.Tag)
	key := x.Footprint.hash
	if tag != "" {
		key = subjectKey(fingerprint(tag), 0)
	}
	s := c.enter()
	defer s.mu.Unlock()
	b := s.at(c, x.End).board(transactions)
	t := b.tallies[key]
	if t == nil {
		t = b.add(key, x.subject(tag))
		t.shown = len(x.Footprint.accesses)
	}
	// An attempt that was aborted early may have accessed fewer columns than a later attempt with the same tag.
	if touched := len(x.Footprint.accesses); touched > t.shown {
		b.texts -= t.subject.size()
		t.subject.lists, t.shown = x.Footprint.lists(), touched
		b.texts += t.subject.size()
	}
	x.count(t)
}

// subject returns the subject of the transaction. Transactions with the same tag share a row, which shows the columns
// of the attempt with the most accesses.
func (x *Transaction) subject(tag string) subject {
	s := subject{tag: tag, lists: x.Footprint.lists()}
	s.fingerprint = fingerprint(tag)
	if tag == "" {
		var parts [len(s.lists)]string
		for i, l := range s.lists {
			parts[i] = strings.Join(l, ",")
		}
		s.fingerprint = fingerprint(strings.Join(parts[:], "\x00"))
	}
	return s
}

func (x *Transaction) count(t *tally) {
	t.sums[txnAttempts]++
	t.sums[txnIsolation+int(x.Isolation)]++
	if x.Retry {
		t.sums[txnRetries]++
	}
	t.distribution().Observe(x.TotalLatency)
	if x.Outcome == AbortedEarly {
		t.sums[txnAborts]++
	}
	if x.Outcome == AbortedEarly || x.Outcome == Abandoned {
		return
	}
	t.sums[txnCommits]++
	switch x.Outcome {
	case Aborted:
		t.sums[txnAborts]++
	case FailedPrecondition:
		t.sums[txnFailedPreconditions]++
	}
	t.sums[txnParticipants] += x.Participants
	t.sums[txnTotalLatency] += int64(x.TotalLatency)
	t.sums[txnCommitLatency] += int64(x.CommitLatency)
	t.sums[txnBytes] += x.Bytes
	for _, w := range x.Footprint.written {
		t.wrote(w.table, w.rows, w.bytes)
	}
}

var txnColumns = []column{
	intervalEnd,
	fingerprintColumn("FPRINT"),
	list("READ_COLUMNS", readColumns),
	list("WRITE_CONSTRUCTIVE_COLUMNS", writtenColumns),
	list("WRITE_DELETE_TABLES", deletedTables),
	sum("COMMIT_ATTEMPT_COUNT", txnCommits),
	sum("COMMIT_FAILED_PRECONDITION_COUNT", txnFailedPreconditions),
	sum("COMMIT_ABORT_COUNT", txnAborts),
	average("AVG_PARTICIPANTS", txnParticipants, ones, commits),
	average("AVG_TOTAL_LATENCY_SECONDS", txnTotalLatency, nanos, commits),
	average("AVG_COMMIT_LATENCY_SECONDS", txnCommitLatency, nanos, commits),
	average("AVG_BYTES", txnBytes, ones, commits),
	sum("COMMIT_RETRY_COUNT", txnRetries),
	tagColumn("TRANSACTION_TAG"),
	{name: "OPERATIONS_BY_TABLE", typ: writtenType, of: func(r row) value.Value { return writtenValue(r.written) }},
	distributionColumn("TOTAL_LATENCY_DISTRIBUTION"),
	sum("ATTEMPT_COUNT", txnAttempts),
	sum("SERIALIZABLE_PESSIMISTIC_TXN_COUNT", txnIsolation+int(SerializablePessimistic)),
	sum("REPEATABLE_READ_OPTIMISTIC_TXN_COUNT", txnIsolation+int(RepeatableReadOptimistic)),
	sum("SERIALIZABLE_OPTIMISTIC_TXN_COUNT", txnIsolation+int(SerializableOptimistic)),
	distributionText("TOTAL_LATENCY_DISTRIBUTION_JSON_STRING"),
	{name: "OPERATIONS_BY_TABLE_JSON_STRING", typ: value.StringType, of: func(r row) value.Value { return value.OfString(structsText(writtenType, writtenValue(r.written))) }},
}

var writtenType = value.ArrayOf(value.StructOf(
	value.Field{Name: "TABLE_NAME", Type: value.StringType},
	value.Field{Name: "INSERT_OR_UPDATE_COUNT", Type: value.Int64Type},
	value.Field{Name: "INSERT_OR_UPDATE_BYTES", Type: value.Int64Type},
))

func writtenValue(list []written) value.Value {
	return structs(list, func(w written) []value.Value {
		return []value.Value{value.OfString(w.table), value.OfInt64(w.rows), value.OfInt64(w.bytes)}
	})
}
