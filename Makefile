.PHONY: build test ci

# The program knows its commit (crowfoot version), also where the environment turns that off.
build:
	go build -buildvcs=auto -o crowfoot ./cmd/crowfoot

test:
	go test ./...

# What CI runs.
ci:
	.ci/run
