package server

import (
	"fmt"
	"slices"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// info returns the FlightInfo of a request of Spanner's API, sent as a command.
func (f *flightClient) info(req proto.Message) (*arrowflight.FlightInfo, error) {
	f.Helper()
	command, err := anypb.New(req)
	f.ok(err)
	data, err := proto.Marshal(command)
	f.ok(err)
	return f.Client.Client.GetFlightInfo(f.harness.ctx, &arrowflight.FlightDescriptor{Type: arrowflight.DescriptorCMD, Cmd: data})
}

// request returns the rows of a request of Spanner's API that is sent as a command of Flight.
func (f *flightClient) request(req proto.Message) (rows []string, err error) {
	f.Helper()
	info, err := f.info(req)
	if err != nil {
		return nil, err
	}
	return f.read(info)
}

// TestFlightPartition: partitions that PartitionRead and PartitionQuery made can be read over Flight. Together they
// return each row once, at the transaction's timestamp.
func TestFlightPartition(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	const rows = 5000
	h.dmlOnce(ses, fmt.Sprintf("INSERT INTO Singers (SingerId, Name) SELECT n, 'before' FROM UNNEST(GENERATE_ARRAY(1, %d)) n", rows))
	in := byID(h.begin(ses, readOnly()))
	read := &spannerpb.PartitionReadRequest{Session: ses, Transaction: in, Table: "Singers", Columns: []string{"Name", "SingerId"}, KeySet: allKeys(),
		PartitionOptions: &spannerpb.PartitionOptions{MaxPartitions: 3}}
	ofRead, err := h.data.PartitionRead(h.ctx, read)
	h.ok(err)
	query := &spannerpb.PartitionQueryRequest{Session: ses, Transaction: in, Sql: "SELECT Name, SingerId FROM Singers", PartitionOptions: read.PartitionOptions}
	ofQuery, err := h.data.PartitionQuery(h.ctx, query)
	h.ok(err)
	h.dmlOnce(ses, "UPDATE Singers SET Name = 'after' WHERE TRUE")
	var reads, queries []proto.Message
	for _, p := range ofRead.Partitions {
		reads = append(reads, &spannerpb.ReadRequest{Session: ses, Transaction: in, Table: read.Table, Columns: read.Columns, KeySet: read.KeySet, PartitionToken: p.PartitionToken})
	}
	for _, p := range ofQuery.Partitions {
		queries = append(queries, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: in, Sql: query.Sql, PartitionToken: p.PartitionToken})
	}
	f := h.newFlightClient()
	for name, requests := range map[string][]proto.Message{"read": reads, "query": queries} {
		var all []string
		for _, r := range requests {
			part, err := f.request(r)
			h.ok(err)
			all = append(all, part...)
		}
		slices.Sort(all)
		if all = slices.Compact(all); len(requests) != 3 || len(all) != rows || all[0] != "before|1" {
			t.Errorf("%s: %d partitions, %d rows, %v", name, len(requests), len(all), all[:min(len(all), 1)])
		}
	}
	info, err := f.info(reads[0])
	h.ok(err)
	_, err = f.CancelFlightInfo(f.ctx, &arrowflight.CancelFlightInfoRequest{Info: info}) // a read can be cancelled, too
	h.ok(err)
	_, err = f.RenewFlightEndpoint(f.ctx, &arrowflight.RenewFlightEndpointRequest{Endpoint: info.Endpoint[0]})
	h.ok(err)
	_, err = f.request(&spannerpb.ReadRequest{Session: ses, Transaction: in, Table: "Nothing", Columns: read.Columns, KeySet: allKeys()})
	h.fails(err, codes.NotFound)
	foreign := proto.CloneOf(queries[0].(*spannerpb.ExecuteSqlRequest))
	foreign.Sql += " "
	_, err = f.request(foreign)
	h.fails(err, codes.InvalidArgument)
}
