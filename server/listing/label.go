package listing

import (
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Limits on the labels of a resource: https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#session.
const (
	maxLabels     = 64
	maxLabelBytes = 63
)

// CheckLabels returns an error if there are too many labels, or one is malformed: keys match [a-z][-a-z0-9_]*, values
// [-a-z0-9_]*.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return usererror.TooManyLabels(len(labels), maxLabels)
	}
	for k, v := range labels {
		if k == "" || len(k) > maxLabelBytes || k[0] < 'a' || k[0] > 'z' || !isLabelText(k) {
			return usererror.InvalidLabel(k)
		}
		if len(v) > maxLabelBytes || !isLabelText(v) {
			return usererror.InvalidLabel(v)
		}
	}
	return nil
}

func isLabelText(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// A LabelFilter is a filter on labels. Its conditions are labels.k:v (the value of label k contains v, ignoring case),
// labels.k=v (the value equals v), and labels.k:* or labels.k (there is a label k). Several conditions are joined by
// spaces or AND.
type LabelFilter []labelCondition

type labelCondition struct {
	key, value string
	exact      bool
}

func ParseLabelFilter(text string) (LabelFilter, error) {
	var filter LabelFilter
	for _, term := range strings.Fields(text) {
		if strings.EqualFold(term, "AND") {
			continue
		}
		rest, ok := strings.CutPrefix(term, "labels.")
		if !ok {
			return nil, usererror.InvalidFilter(text)
		}
		at := strings.IndexAny(rest, ":=")
		if at < 0 {
			filter = append(filter, labelCondition{key: rest, value: "*"})
			continue
		}
		filter = append(filter, labelCondition{key: rest[:at], value: strings.Trim(rest[at+1:], `"`), exact: rest[at] == '='})
	}
	return filter, nil
}

func (f LabelFilter) Matches(labels map[string]string) bool {
	for _, c := range f {
		v, ok := labels[c.key]
		switch {
		case !ok:
			return false
		case c.exact && v != c.value:
			return false
		case !c.exact && c.value != "*" && !strings.Contains(v, strings.ToLower(c.value)):
			return false
		}
	}
	return true
}
