// Package listing is what the methods that list resources have in common: pages with their tokens, and labels with the filters on them.
//
// Imports of this module: usererror.
package listing
