//! The kubelet's podresources API v1, generated from `proto/podresources.proto`.
#![allow(missing_docs, unreachable_pub, clippy::pedantic)]

tonic::include_proto!("v1");
