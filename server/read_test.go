package server

import (
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestPointReadIsOneFrame(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.insert(ses, list("1", "Marc"), list("2", "Catalina"))
	got := h.partial(h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{
		Session: ses, Table: "Singers", Columns: []string{"Name", "SingerId"},
		KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{list("2")}},
	}))
	if len(got) != 1 {
		t.Fatalf("want one message, got %d: %v", len(got), got)
	}
	p := got[0]
	if !p.Last || len(p.ResumeToken) == 0 || len(p.Metadata.RowType.Fields) != 2 || p.Metadata.RowType.Fields[1].Type.Code != spannerpb.TypeCode_INT64 {
		t.Errorf("bad message %v", p)
	}
	if p.Metadata.RowType.Fields[0].Name != "Name" || p.Values[0].GetStringValue() != "Catalina" || p.Values[1].GetStringValue() != "2" {
		t.Errorf("bad row %v", p)
	}
}
