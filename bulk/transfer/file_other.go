//go:build !unix

package transfer

import "os"

// lockFile does nothing: here, two processes must not have the same file.
func lockFile(*os.File) error { return nil }

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
