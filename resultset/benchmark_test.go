package resultset

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// BenchmarkUnmarshal compares Unmarshal with package proto of protobuf. It reports nanoseconds and allocations per
// row. The decoded messages hold rows of TPC-H's table CUSTOMER (https://www.tpc.org/tpch), records of a change
// stream, or the row of a point read.
func BenchmarkUnmarshal(b *testing.B) {
	for _, c := range []struct {
		name string
		rows int
		m    *spannerpb.PartialResultSet
	}{
		{"customers", 1000, customers(1000)},
		{"records", 100, records(100)},
		{"point", 1, customers(1)},
	} {
		data := encode(b, c.m)
		for _, way := range []struct {
			name      string
			unmarshal func([]byte, *spannerpb.PartialResultSet) error
		}{
			{"proto", func(data []byte, m *spannerpb.PartialResultSet) error { return proto.Unmarshal(data, m) }},
			{"resultset", Unmarshal},
		} {
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if err := way.unmarshal(data, new(spannerpb.PartialResultSet)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.rows), "ns/row")
			})
		}
	}
}

// customers returns a result with n rows of 8 columns.
func customers(n int) *spannerpb.PartialResultSet {
	m := &spannerpb.PartialResultSet{ResumeToken: []byte("a token of a result")}
	for i := range n {
		for _, column := range []string{
			fmt.Sprint(i), fmt.Sprintf("Customer#%09d", i), "IVhzIApeRb ot,c,E", "15", "25-989-741-2988", "711.56", "BUILDING",
			"to the even, regular platelets. regular, ironic epitaphs nag e",
		} {
			m.Values = append(m.Values, structpb.NewStringValue(column))
		}
	}
	return m
}

// records returns n rows as a query of a change stream returns them. Each row is a data_change_record
// (https://cloud.google.com/spanner/docs/change-streams/details#data-change-records).
func records(n int) *spannerpb.PartialResultSet {
	column := func(name, kind string, key bool) any {
		return []any{name, `{"code":"` + kind + `"}`, key, "1"}
	}
	m := &spannerpb.PartialResultSet{ResumeToken: []byte("a token of a result")}
	for i := range n {
		v, err := structpb.NewValue([]any{[]any{
			[]any{[]any{
				"2026-01-02T03:04:05.678901Z", fmt.Sprintf("%08d", i), "MTIzNDU2Nzg5MDEyMzQ1Njc4", true, "Singers",
				[]any{column("SingerId", "INT64", true), column("FirstName", "STRING", false), column("LastName", "STRING", false), column("Updated", "TIMESTAMP", false)},
				[]any{[]any{fmt.Sprintf(`{"SingerId":"%d"}`, i), `{"FirstName":"Marc","LastName":"Richards","Updated":"2026-01-02T03:04:05.678901Z"}`, `{}`}},
				"INSERT", "OLD_AND_NEW_VALUES", "1", "1", "", false,
			}},
			[]any{}, []any{},
		}})
		if err != nil {
			panic(err)
		}
		m.Values = append(m.Values, v)
	}
	return m
}
