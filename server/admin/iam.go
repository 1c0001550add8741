package admin

import (
	"context"
	"strings"

	"cloud.google.com/go/iam/apiv1/iampb"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// testIAMPermissions answers TestIamPermissions for a database, or a role or session in it. Crowfoot has no IAM, so
// every permission in the request is granted.
func (s *databases) testIAMPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	if err := s.checkResource(req.Resource); err != nil {
		return nil, err
	}
	return &iampb.TestIamPermissionsResponse{Permissions: req.Permissions}, nil
}

// getIAMPolicy answers GetIamPolicy with an empty policy, because no policy can be set.
func (s *databases) getIAMPolicy(_ context.Context, req *iampb.GetIamPolicyRequest) (*iampb.Policy, error) {
	return new(iampb.Policy), s.checkResource(req.Resource)
}

// checkResource checks the name of a database, or of a role or session in it. It returns an error if the database or
// the role does not exist. It does not check whether the session exists.
func (s *databases) checkResource(name string) error {
	database, rest, _ := strings.Cut(name, "/databaseRoles/")
	if rest == "" {
		database, _, _ = strings.Cut(name, "/sessions/")
	}
	d, err := s.registry.Database(database)
	if err != nil {
		return err
	}
	if rest != "" {
		if _, err := d.Catalog().AccessOf(rest); err != nil {
			return usererror.SchemaObjectNotFound("Role", rest)
		}
	}
	return nil
}

func (s *instances) testIAMPermissions(_ context.Context, req *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	if _, err := s.registry.Instance(req.Resource); err != nil {
		return nil, err
	}
	return &iampb.TestIamPermissionsResponse{Permissions: req.Permissions}, nil
}

func (s *instances) getIAMPolicy(_ context.Context, req *iampb.GetIamPolicyRequest) (*iampb.Policy, error) {
	_, err := s.registry.Instance(req.Resource)
	return new(iampb.Policy), err
}
