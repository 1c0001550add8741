.PHONY: build test ci

build:
	go build -o crowfoot ./cmd/crowfoot

test:
	go test ./...

# What CI runs.
ci:
	.ci/run
