package server

import (
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// replays holds the answers to a transaction's writing requests, by seqno. A client that did not get a reply sends the
// request again; it then gets the same answer, and nothing is written twice. A new seqno must be higher than all
// earlier ones.
type replays struct {
	bySeqno map[int64]replay
	last    int64
}

// A replay is the stored answer to one request. Exactly one of dml, batch and err is set.
type replay struct {
	request uint64 // fingerprint of the request
	dml     *dmlOutcome
	batch   proto.Message
	err     error
}

// find returns the answer to the request with this seqno, if there is one. It returns an error if the seqno belongs to
// a different request, or if it is new but lower than an earlier one.
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

// keep stores the answer to the request with this seqno.
func (r *replays) keep(seqno int64, answer replay) {
	if r.bySeqno == nil {
		r.bySeqno = map[int64]replay{}
	}
	r.bySeqno[seqno] = answer
	r.last = max(r.last, seqno)
}
