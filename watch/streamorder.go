package watch

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// This file puts the transactions of a change stream in order. The records of one transaction lie in all partitions to
// which the transaction has written. A transaction is delivered when all its records have been read, and when no
// transaction with an earlier timestamp is left in the queues of these partitions. So transactions are delivered
// whole, and those that change one key come in the order of their commits.
//
// Transactions with the same timestamp have changed different rows, so they are delivered in any order. Two partitions
// may hold their records in different orders, and a partition may hold records of one transaction between records of
// another. No transaction waits for ever, because the one with the lowest timestamp never waits for another.

// transactionKey identifies a transaction.
type transactionKey struct {
	commit time.Time
	id     string
}

// streamTransaction is a transaction with those of its records that were read so far.
type streamTransaction struct {
	transactionKey
	tag        string
	system     bool
	records    []*dataRecord
	want       int // the number of records of the transaction in all partitions
	partitions []*streamPartition
	popped     bool
}

// addData adds a record to its transaction, and adds the transaction to the queue of partition p. The caller holds mu.
func (r *streamReader) addData(p *streamPartition, d *dataRecord) {
	key := transactionKey{d.commit, d.transaction}
	var tx *streamTransaction
	if d.records > 1 {
		tx = r.transactions[key]
	}
	if tx == nil {
		tx = &streamTransaction{transactionKey: key, tag: d.tag, system: d.system, want: d.records}
		if d.records > 1 {
			r.transactions[key] = tx
		}
	}
	if !slices.Contains(tx.partitions, p) {
		p.queue = append(p.queue, tx)
		tx.partitions = append(tx.partitions, p)
	}
	tx.records = append(tx.records, d)
	d.partition = p
	p.changes += len(d.changes)
	p.bytes += d.bytes
	if len(tx.records) == tx.want {
		r.candidates = append(r.candidates, tx)
	}
}

// popReady returns the transactions that can be delivered now, in the order in which to deliver them. It marks them as
// popped. The caller holds mu.
func (r *streamReader) popReady() (list []*streamTransaction) {
	for len(r.candidates) > 0 {
		tx := r.candidates[0]
		r.candidates[0] = nil // so that the array does not keep the transaction in memory
		r.candidates = r.candidates[1:]
		if !tx.ready() {
			continue
		}
		tx.popped = true
		list = append(list, tx)
		for _, p := range tx.partitions {
			r.candidates = append(r.candidates, p.next()...)
		}
	}
	return list
}

func (tx *streamTransaction) ready() bool {
	if tx.popped || len(tx.records) < tx.want {
		return false
	}
	return !slices.ContainsFunc(tx.partitions, func(p *streamPartition) bool { return !p.queue[p.popped].commit.Equal(tx.commit) })
}

// next returns the transactions with the lowest timestamp among those in the queue that popReady has not returned yet.
// The caller holds mu.
func (p *streamPartition) next() []*streamTransaction {
	for p.popped < len(p.queue) && p.queue[p.popped].popped {
		p.popped++
	}
	n := p.popped
	for n < len(p.queue) && p.queue[n].commit.Equal(p.queue[p.popped].commit) {
		n++
	}
	return p.queue[p.popped:n]
}

// remove removes a transaction from the queue. The caller holds mu.
func (p *streamPartition) remove(tx *streamTransaction) {
	at := slices.Index(p.queue, tx)
	copy(p.queue[1:at+1], p.queue[:at])
	p.queue[0] = nil // so that the array does not keep the removed transaction in memory
	p.queue = p.queue[1:]
	if at < p.popped {
		p.popped--
	}
}

// checkpointEvery is the shortest time between two checkpoints of a stream. More frequent checkpoints would cost too
// much, because each checkpoint lists all partitions.
const checkpointEvery = 100 * time.Millisecond

// deliver gives the handler the transactions that were read from the partitions, until ctx ends.
func (r *streamReader) deliver() error {
	defer r.checkpoint()
	tick := time.NewTimer(checkpointEvery)
	defer tick.Stop()
	due, dirty := true, false // due: it is time for a checkpoint; dirty: there may be progress since the last checkpoint
	for {
		select {
		case <-r.work:
			dirty = true
		case <-tick.C:
			due = true
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
		r.mu.Lock()
		list := r.popReady()
		r.mu.Unlock()
		if err := r.handOut(list); err != nil {
			return err
		}
		if due && dirty {
			r.checkpoint()
			due, dirty = false, false
			tick.Reset(checkpointEvery)
		}
	}
}

// handOut passes transactions to the handler, and removes those that it has handled from their queues.
func (r *streamReader) handOut(list []*streamTransaction) error {
	var out []*Transaction
	last := make([]int, 0, len(list)) // last[i] is the number of elements of out that come from list[:i+1]
	for _, tx := range list {
		out = append(out, r.transaction(tx)...)
		last = append(last, len(out))
	}
	handled := 0
	var err error
	if len(out) > 0 {
		handled, err = r.out.Deliver(r.ctx, out)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, tx := range list {
		if last[i] > handled {
			break
		}
		r.delivered(tx)
	}
	return err
}

// transaction converts a transaction to the Transactions that the handler gets. Each of them has at most
// MaxTransactionChanges changes. The list is empty if the stream's options include none of the transaction's tables.
func (r *streamReader) transaction(tx *streamTransaction) (list []*Transaction) {
	slices.SortFunc(tx.records, func(a, b *dataRecord) int { return cmp.Compare(a.sequence, b.sequence) })
	var changes []Change
	for _, d := range tx.records {
		if r.includes(d.table) {
			changes = append(changes, d.changes...)
		}
	}
	for len(changes) > 0 {
		n := min(len(changes), MaxTransactionChanges)
		list = append(list, &Transaction{CommitTimestamp: tx.commit, ID: tx.id, Tag: tx.tag, System: tx.system, Changes: changes[:n:n], Partial: n < len(changes)})
		changes = changes[n:]
	}
	return list
}

// delivered removes a transaction from its queues. The caller holds mu.
func (r *streamReader) delivered(tx *streamTransaction) {
	if tx.want > 1 {
		delete(r.transactions, tx.transactionKey)
	}
	for _, d := range tx.records {
		d.partition.changes -= len(d.changes)
		d.partition.bytes -= d.bytes
	}
	for _, p := range tx.partitions {
		p.remove(tx)
		if p.from.Equal(tx.commit) {
			p.delivered = append(p.delivered, tx.id)
		} else {
			p.from, p.delivered = tx.commit, []string{tx.id}
		}
		r.finishIfDelivered(p)
	}
	r.room.Broadcast()
}

// streamPosition is the Position of a stream's checkpoint. It lists the partitions that are not completely delivered.
type streamPosition struct {
	Partitions []partitionPosition `json:"partitions"`
}

// partitionPosition says how much of a partition is delivered: all transactions before the timestamp From, and those at
// this timestamp whose ids are in Transactions.
type partitionPosition struct {
	Token        string    `json:"token"`
	From         time.Time `json:"from"`
	Transactions []string  `json:"transactions,omitempty"`
	Parents      []string  `json:"parents,omitempty"` // the partitions that must be delivered first
}

func parseStreamPosition(text string) (p streamPosition, err error) {
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, status.Errorf(codes.FailedPrecondition, "The checkpoint's position is not a change stream's: %q", text)
	}
	return p, nil
}

func (p *streamPartition) position() partitionPosition {
	at := partitionPosition{Token: p.token, From: p.from, Transactions: p.delivered, Parents: p.parents}
	next := p.heartbeat.Add(time.Microsecond)
	if len(p.queue) > 0 {
		next = p.queue[0].commit
	}
	if next.After(at.From) {
		at.From, at.Transactions = next, nil
	}
	return at
}

// checkpoint passes the sink a checkpoint that says how much of each partition is delivered.
func (r *streamReader) checkpoint() {
	r.mu.Lock()
	var position streamPosition
	for _, p := range r.partitions {
		position.Partitions = append(position.Partitions, p.position())
	}
	r.mu.Unlock()
	if len(position.Partitions) == 0 {
		return
	}
	slices.SortFunc(position.Partitions, func(a, b partitionPosition) int { return cmp.Compare(a.Token, b.Token) })
	first := slices.MinFunc(position.Partitions, func(a, b partitionPosition) int { return a.From.Compare(b.From) })
	text, err := json.Marshal(position)
	if err != nil {
		panic(err) // cannot fail: the position holds only strings and times
	}
	r.out.Checkpoint(Checkpoint{Timestamp: first.From.Add(-time.Microsecond), Position: string(text)})
}
