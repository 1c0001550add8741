package rest

import (
	"net/url"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// A route is one HTTP binding of a method, from its google.api.http annotation:
//
//	POST /v1/{session=projects/*/instances/*/databases/*/sessions/*}:commit   body: "*"
type route struct {
	method     *rpc.Method
	descriptor protoreflect.MethodDescriptor
	verb       string // GET, POST, ...
	segments   []string
	suffix     string // the text after the colon, such as commit; "" if there is none
	variables  []pathVariable
	body       string // the field of the request that the HTTP body sets: "*" for the whole request, "" for none
}

// A pathVariable is a field that gets a part of the path: the segments with the indexes in [from, to).
type pathVariable struct {
	field    string
	from, to int
}

// routesOf returns a route for each HTTP binding of a method.
func routesOf(m *rpc.Method, d protoreflect.MethodDescriptor) []*route {
	rule, _ := proto.GetExtension(d.Options(), annotations.E_Http).(*annotations.HttpRule)
	rules := append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...)
	if d.Parent().FullName() == "google.longrunning.Operations" {
		rules = append(rules, operationRules[m.Name]...)
	}
	var list []*route
	for _, r := range rules {
		if route := newRoute(r); route != nil {
			route.method, route.descriptor = m, d
			list = append(list, route)
		}
	}
	return list
}

// operationRules are the HTTP bindings of google.longrunning.Operations in Spanner's API, by method. The proto of
// Operations does not have them.
var operationRules = map[string][]*annotations.HttpRule{
	"ListOperations":  operationBindings("operations", httpGet),
	"GetOperation":    operationBindings("operations/*", httpGet),
	"DeleteOperation": operationBindings("operations/*", httpDelete),
	"CancelOperation": operationBindings("operations/*", func(path string) *annotations.HttpRule { return httpPost(path + ":cancel") }),
	"WaitOperation":   operationBindings("operations/*", func(path string) *annotations.HttpRule { return httpPost(path + ":wait") }),
}

func operationBindings(end string, rule func(path string) *annotations.HttpRule) []*annotations.HttpRule {
	return []*annotations.HttpRule{
		rule("/v1/{name=projects/*/instances/*/databases/*/" + end + "}"),
		rule("/v1/{name=projects/*/instances/*/" + end + "}"),
	}
}

func httpGet(path string) *annotations.HttpRule {
	return &annotations.HttpRule{Pattern: &annotations.HttpRule_Get{Get: path}}
}

func httpDelete(path string) *annotations.HttpRule {
	return &annotations.HttpRule{Pattern: &annotations.HttpRule_Delete{Delete: path}}
}

func httpPost(path string) *annotations.HttpRule {
	return &annotations.HttpRule{Pattern: &annotations.HttpRule_Post{Post: path}, Body: "*"}
}

// newRoute returns the route of a rule, or nil if the rule's pattern is of an unknown kind.
func newRoute(rule *annotations.HttpRule) *route {
	r := &route{body: rule.GetBody()}
	var path string
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		r.verb, path = "GET", p.Get
	case *annotations.HttpRule_Post:
		r.verb, path = "POST", p.Post
	case *annotations.HttpRule_Put:
		r.verb, path = "PUT", p.Put
	case *annotations.HttpRule_Patch:
		r.verb, path = "PATCH", p.Patch
	case *annotations.HttpRule_Delete:
		r.verb, path = "DELETE", p.Delete
	default:
		return nil
	}
	r.compile(strings.TrimPrefix(path, "/"))
	return r
}

// compile parses a path template such as v1/{name=a/*/b/*}/c:suffix into the route.
func (r *route) compile(template string) {
	if at := strings.LastIndexByte(template, ':'); at > strings.LastIndexByte(template, '/') && at > strings.LastIndexByte(template, '}') {
		template, r.suffix = template[:at], template[at+1:]
	}
	for template != "" {
		template = strings.TrimPrefix(template, "/")
		if !strings.HasPrefix(template, "{") {
			segment, rest, _ := strings.Cut(template, "/")
			r.segments = append(r.segments, segment)
			template = rest
			continue
		}
		inside, rest, _ := strings.Cut(template[1:], "}")
		field, pattern, ok := strings.Cut(inside, "=")
		if !ok {
			pattern = "*"
		}
		from := len(r.segments)
		r.segments = append(r.segments, strings.Split(pattern, "/")...)
		r.variables = append(r.variables, pathVariable{field: field, from: from, to: len(r.segments)})
		template = rest
	}
}

// match reports whether the route matches a path, and returns the values of the route's variables. path has the
// segments of the URL's path, still escaped. The segment ** of a route matches all remaining segments.
func (r *route) match(path []string) (values []string, ok bool) {
	segments := append([]string(nil), path...)
	if r.suffix != "" {
		last, cut := strings.CutSuffix(segments[len(segments)-1], ":"+r.suffix)
		if !cut {
			return nil, false
		}
		segments[len(segments)-1] = last
	}
	open := len(r.segments) > 0 && r.segments[len(r.segments)-1] == "**"
	if len(segments) < len(r.segments) || (len(segments) > len(r.segments) && !open) {
		return nil, false
	}
	for i, want := range r.segments {
		text, err := url.PathUnescape(segments[i])
		if err != nil || text == "" || (want != "*" && want != "**" && want != text) {
			return nil, false
		}
		segments[i] = text
	}
	for _, v := range r.variables {
		to := v.to
		if v.to == len(r.segments) {
			to = len(segments)
		}
		values = append(values, strings.Join(segments[v.from:to], "/"))
	}
	return values, true
}
