//! A real Kubernetes on one machine, without Docker: control plane, and nodes that are isolated machines with the
//! `/sys`, `/dev` and `/proc` of a machine file. The vocabulary of the scenario tests and of the demo.
//!
//! Needs root: network, mount and PID namespaces. Everything that is started lives in one PID namespace and dies
//! with its first process; the machine underneath keeps its `/etc`, `/run` and `/lib/modules`.

pub mod bench;
pub mod cluster;
pub mod cmd;
pub mod control_plane;
pub mod demo;
pub mod examples;
pub mod foreign;
pub mod image;
pub mod kubelet;
pub mod machines;
pub mod node;
pub mod packages;
pub mod paths;
pub mod product;
pub mod progress;
pub mod repository;
pub mod rootfs;
pub mod scenario;
pub mod schemas;
pub mod supervisor;
pub mod tools;
