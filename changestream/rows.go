package changestream

import (
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// Records that no commit writes. Their form is the manual's:
// https://cloud.google.com/spanner/docs/change-streams/details#child-partitions-records.

// maxChildren is how many partitions a record names. An initial query, or the end of a partition, makes as many records as it takes.
const maxChildren = 100

func heartbeatRecord(at mvcc.Timestamp) []byte {
	fields := appendText(nil, at.Time().Format(timestampLayout))
	return appendRecordEnd(append(appendRecordHead(nil, heartbeat, len(fields)), fields...), heartbeat)
}

// childRecords are records of partitions that are read from a timestamp on, in the order of keys. A partition that has taken the place of others
// names them as its parents, unless the records answer an initial query.
func childRecords(from mvcc.Timestamp, partitions []*Partition, initial bool) (rows []row) {
	for part := range slices.Chunk(partitions, maxChildren) {
		var children []byte
		for _, p := range part {
			var parents []byte
			for _, id := range p.parents {
				if !initial {
					parents = appendText(parents, p.stream.log.tokenOf(p.stream.id, id))
				}
			}
			children = appendListHead(children, valueSize(len(p.token))+valueSize(len(parents)))
			children = append(appendListHead(appendText(children, p.token), len(parents)), parents...)
		}
		fields := appendText(nil, from.Time().Format(timestampLayout))
		fields = appendText(fields, fmt.Sprintf("%08d", len(rows)))
		fields = append(appendListHead(fields, len(children)), children...)
		record := append(appendRecordHead(nil, childPartitions, len(fields)), fields...)
		rows = append(rows, row{appendRecordEnd(record, childPartitions), Position{from, uint32(len(rows)) + 1}})
	}
	return rows
}
