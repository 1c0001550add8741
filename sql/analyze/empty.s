// This file lets engine.go declare functions without bodies.
