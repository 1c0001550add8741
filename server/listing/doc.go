// Package listing has what all methods that list resources need: pages with page tokens, and labels with filters on
// labels.
//
// Imports of this module: usererror.
package listing
