package server

import (
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// replays are the answers of a transaction's writing requests, by seqno. A client that did not get a reply
// sends the request again; it then gets the same answer, and nothing is written twice.
// A seqno must be higher than all before it.
type replays struct {
	bySeqno map[int64]replay
	last    int64
}

// A replay is one answered request. Exactly one of dml, batch and err is set.
type replay struct {
	request uint64 // its fingerprint
	dml     *dmlOutcome
	batch   proto.Message
	err     error
}

// find returns the answer of the request with this seqno, if it was answered before.
func (r *replays) find(seqno int64, request uint64) (replay, bool, error) {
	if len(r.bySeqno) == 0 {
		return replay{}, false, nil
	}
	if known, ok := r.bySeqno[seqno]; ok {
		if known.request != request {
			return replay{}, false, usererror.ReusedSeqno(seqno)
		}
		return known, true, nil
	}
	if seqno < r.last {
		return replay{}, false, usererror.OutOfOrderSeqno(seqno, r.last)
	}
	return replay{}, false, nil
}

// keep remembers an answer.
func (r *replays) keep(seqno int64, answer replay) {
	if r.bySeqno == nil {
		r.bySeqno = map[int64]replay{}
	}
	r.bySeqno[seqno] = answer
	r.last = max(r.last, seqno)
}
