// Package listing holds the common parts of methods that list resources: pages with their tokens, and labels with filters on
// them.
//
// Imports of this module: usererror.
package listing
