package changestream

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// Records that no commit writes. Their form is the manual's:
// https://cloud.google.com/spanner/docs/change-streams/details#child-partitions-records.

// maxChildren is how many partitions a record names. An initial query, or the end of a partition, makes as many records as it takes.
const maxChildren = 100

// TimestampFormat is how records print timestamps, in UTC.
const TimestampFormat = "2006-01-02T15:04:05.000000Z"

func heartbeatRecord(at mvcc.Timestamp) []byte {
	return changeRecord(1, text(at.Time().Format(TimestampFormat)))
}

// childRecords are records of partitions that are read from a timestamp on, in the order of keys. Of partitions that an earlier one has become, they name
// all those that have become it.
func childRecords(from mvcc.Timestamp, partitions []*Partition, withParents bool) (rows []row) {
	at := text(from.Time().Format(TimestampFormat))
	for part := range slices.Chunk(partitions, maxChildren) {
		children := make([]*structpb.Value, len(part))
		for i, p := range part {
			var parents []*structpb.Value
			if withParents {
				for _, id := range p.parents {
					parents = append(parents, text(p.stream.log.tokenOf(p.stream.id, id)))
				}
			}
			children[i] = list(text(p.token), list(parents...))
		}
		sequence := fmt.Sprintf("%08d", len(rows))
		rows = append(rows, row{record: changeRecord(2, at, text(sequence), list(children...))})
	}
	return rows
}

// changeRecord is a row whose ChangeRecord is one struct, which has one record of one kind: 0 of a data change, 1 a heartbeat, 2 of child
// partitions.
func changeRecord(kind int, fields ...*structpb.Value) []byte {
	kinds := []*structpb.Value{list(), list(), list()}
	kinds[kind] = list(list(fields...))
	data, err := proto.Marshal(list(list(kinds...)))
	if err != nil {
		panic(err) // it has but texts and lists
	}
	return data
}

func text(s string) *structpb.Value { return structpb.NewStringValue(s) }

func list(values ...*structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: values})
}
