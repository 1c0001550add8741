package server

import (
	"context"
	"sort"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// sessionMethods are the RPCs about sessions.
func (s *Server) sessionMethods() []method {
	return []method{
		unary("CreateSession", s.createSessionRPC),
		unary("BatchCreateSessions", s.batchCreateSessions),
		unary("GetSession", s.getSession),
		unary("ListSessions", s.listSessions),
		unary("DeleteSession", s.deleteSession),
	}
}

// database finds a database by a name that a request gives.
func (s *Server) database(name string) (*database.Database, error) {
	db, err := s.registry.Database(name)
	if err != nil && database.CheckDatabaseName(name) != nil {
		return nil, usererror.InvalidResourceName("database", name)
	}
	return db, err
}

func (s *Server) createSessionRPC(_ context.Context, req *spannerpb.CreateSessionRequest) (*spannerpb.Session, error) {
	db, err := s.database(req.Database)
	if err != nil {
		return nil, err
	}
	ses, err := s.createSession(db, req.Session)
	if err != nil {
		return nil, err
	}
	return ses.proto(), nil
}

// maxSessionBatch is how many sessions one call makes; the reply may hold fewer than asked for.
const maxSessionBatch = 100

func (s *Server) batchCreateSessions(_ context.Context, req *spannerpb.BatchCreateSessionsRequest) (*spannerpb.BatchCreateSessionsResponse, error) {
	if req.SessionCount < 1 {
		return nil, usererror.InvalidSessionCount(req.SessionCount)
	}
	if req.SessionTemplate.GetMultiplexed() {
		return nil, usererror.MultiplexedBatch()
	}
	db, err := s.database(req.Database)
	if err != nil {
		return nil, err
	}
	reply := &spannerpb.BatchCreateSessionsResponse{}
	for range min(req.SessionCount, maxSessionBatch) {
		ses, err := s.createSession(db, req.SessionTemplate)
		if err != nil {
			return nil, err
		}
		reply.Session = append(reply.Session, ses.proto())
	}
	return reply, nil
}

func (s *Server) getSession(_ context.Context, req *spannerpb.GetSessionRequest) (*spannerpb.Session, error) {
	ses, err := s.session(req.Name)
	if err != nil {
		return nil, err
	}
	return ses.proto(), nil
}

func (s *Server) deleteSession(_ context.Context, req *spannerpb.DeleteSessionRequest) (*emptypb.Empty, error) {
	ses, err := s.session(req.Name)
	if err != nil {
		return nil, err
	}
	if ses.multiplexed {
		return nil, usererror.MultiplexedDelete()
	}
	s.endSession(ses)
	return &emptypb.Empty{}, nil
}

func (s *Server) listSessions(_ context.Context, req *spannerpb.ListSessionsRequest) (*spannerpb.ListSessionsResponse, error) {
	if _, err := s.database(req.Database); err != nil {
		return nil, err
	}
	filter, err := parseLabelFilter(req.Filter)
	if err != nil {
		return nil, err
	}
	var list []*session
	s.sessions.each(req.Database, func(ses *session) {
		if filter.matches(ses.labels) {
			list = append(list, ses)
		}
	})
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	list, next, err := page(req, list, func(ses *session) string { return ses.name })
	if err != nil {
		return nil, err
	}
	reply := &spannerpb.ListSessionsResponse{NextPageToken: next}
	for _, ses := range list {
		reply.Sessions = append(reply.Sessions, ses.proto())
	}
	return reply, nil
}

// A labelFilter is a filter of ListSessions: labels.k:v (the value contains v,
// ignoring case), labels.k:* or labels.k (the label is there), labels.k=v; several are joined by spaces or AND.
type labelFilter []labelCondition

type labelCondition struct {
	key, value string
	exact      bool
}

func parseLabelFilter(text string) (labelFilter, error) {
	var filter labelFilter
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

func (f labelFilter) matches(labels map[string]string) bool {
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
