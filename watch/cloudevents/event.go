package cloudevents

import (
	"net/http"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/watch/jsonlines"
)

// event holds the attributes of CloudEvents 1.0 (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md)
// and of its Partitioning extension. Its data is JSON.
type event struct {
	id, source, kind, subject, partitionKey string
	time                                    time.Time
	data                                    []byte
}

const (
	specVersion     = "1.0"
	dataContentType = "application/json"
	structuredType  = "application/cloudevents+json; charset=utf-8"
)

// attributes calls visit with the name and value of each attribute that is sent in both content modes.
func (e event) attributes(visit func(name, value string)) {
	visit("specversion", specVersion)
	visit("id", e.id)
	visit("source", e.source)
	visit("type", e.kind)
	visit("subject", e.subject)
	visit("time", e.time.UTC().Format(time.RFC3339Nano))
	visit("partitionkey", e.partitionKey)
}

// structured returns the body of a request in structured content mode: the JSON format of CloudEvents.
func (e event) structured() []byte {
	b := append(make([]byte, 0, 400+len(e.data)), '{')
	e.attributes(func(name, value string) {
		b = jsonlines.AppendString(b, name)
		b = append(b, ':')
		b = jsonlines.AppendString(b, value)
		b = append(b, ',')
	})
	b = append(b, `"datacontenttype":"`+dataContentType+`","data":`...)
	b = append(b, e.data...)
	return append(b, '}')
}

// binary adds the headers of a request in binary content mode, whose body is the data alone.
func (e event) binary(h http.Header) {
	e.attributes(func(name, value string) { h.Set("Ce-"+name, headerValue(value)) })
}

// headerValue encodes the value of an attribute as section 3.1.3.2 of the CloudEvents HTTP binding requires: it
// percent-encodes spaces, double quotes, percent signs, and all bytes that are not printable ASCII.
func headerValue(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f && c != '"' && c != '%' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&0xf]})
		}
	}
	return b.String()
}
