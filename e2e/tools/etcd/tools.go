//go:build tools

// Package tools pins etcd for the local cluster.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
)
