//go:build !unix

package transfer

import "os"

// lockFile does nothing, because this program supports file locks only on Unix. The user must make sure that no two
// processes use the same file.
func lockFile(*os.File) error { return nil }

// syncDir does nothing: on this system, directories cannot be synced.
func syncDir(string) error { return nil }
