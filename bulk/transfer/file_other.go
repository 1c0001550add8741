//go:build !unix

package transfer

import "os"

// lockFile does nothing: on this system, two processes must not share a file.
func lockFile(*os.File) error { return nil }

// syncDir does nothing: on this system, directories cannot be synced.
func syncDir(string) error { return nil }
