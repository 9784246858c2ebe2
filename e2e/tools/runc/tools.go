//go:build tools

// Package tools pins runc for the local cluster.
package tools

import (
	_ "github.com/opencontainers/runc"
)
