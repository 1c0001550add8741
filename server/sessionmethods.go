package server

import (
	"context"
	"sort"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/crowfoot-db/crowfoot/server/listing"
	"github.com/crowfoot-db/crowfoot/usererror"
)

func (s *sessions) createSession(_ context.Context, req *spannerpb.CreateSessionRequest) (*spannerpb.Session, error) {
	db, err := s.registry.Database(req.Database)
	if err != nil {
		return nil, err
	}
	list, err := s.create(db, req.Session, 1)
	if err != nil {
		return nil, err
	}
	return list[0].proto(), nil
}

// maxSessionBatch is how many sessions one BatchCreateSessions creates at most. The API allows a reply with fewer
// sessions than the request asks for.
const maxSessionBatch = 100

func (s *sessions) batchCreateSessions(_ context.Context, req *spannerpb.BatchCreateSessionsRequest) (*spannerpb.BatchCreateSessionsResponse, error) {
	if req.SessionCount < 1 {
		return nil, usererror.InvalidSessionCount(req.SessionCount)
	}
	if req.SessionTemplate.GetMultiplexed() {
		return nil, usererror.MultiplexedBatch()
	}
	db, err := s.registry.Database(req.Database)
	if err != nil {
		return nil, err
	}
	list, err := s.create(db, req.SessionTemplate, int(min(req.SessionCount, maxSessionBatch)))
	if err != nil {
		return nil, err
	}
	reply := &spannerpb.BatchCreateSessionsResponse{}
	for _, ses := range list {
		reply.Session = append(reply.Session, ses.proto())
	}
	return reply, nil
}

func (s *sessions) getSession(_ context.Context, req *spannerpb.GetSessionRequest) (*spannerpb.Session, error) {
	ses, err := s.find(req.Name)
	if err != nil {
		return nil, err
	}
	return ses.proto(), nil
}

func (s *sessions) deleteSession(_ context.Context, req *spannerpb.DeleteSessionRequest) (*emptypb.Empty, error) {
	ses, err := s.find(req.Name)
	if err != nil {
		return nil, err
	}
	if ses.stored.Multiplexed {
		return nil, usererror.MultiplexedDelete()
	}
	if err := s.remove(ses); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

func (s *sessions) listSessions(_ context.Context, req *spannerpb.ListSessionsRequest) (*spannerpb.ListSessionsResponse, error) {
	if _, err := s.registry.Database(req.Database); err != nil {
		return nil, err
	}
	filter, err := listing.ParseLabelFilter(req.Filter)
	if err != nil {
		return nil, err
	}
	var list []*session
	s.each(req.Database, func(ses *session) {
		if filter.Matches(ses.stored.Labels) {
			list = append(list, ses)
		}
	})
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	list, next, err := listing.Page(req, list, func(ses *session) string { return ses.name })
	if err != nil {
		return nil, err
	}
	reply := &spannerpb.ListSessionsResponse{NextPageToken: next}
	for _, ses := range list {
		reply.Sessions = append(reply.Sessions, ses.proto())
	}
	return reply, nil
}
