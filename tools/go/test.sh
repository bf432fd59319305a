#!/usr/bin/env bash
# Tests every Go module of ours, with the flags of the builds, so that the build cache serves both.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-mod=readonly -trimpath -buildvcs=false"
for module in service tools/go/pause tools/go/pulumi; do
  echo "go test: $module"
  (cd "$module" && go vet ./... && go test ./...)
done
