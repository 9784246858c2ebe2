//! Scenarios on a real Kubernetes: the shipped chart and programs, nodes that look like GPU machines.
//!
//! One cluster for all; each scenario leaves it as it found it. They run one after the other, in any order.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that fails should say where"
)]

mod admission;
mod advertisers;
mod alignment;
mod examples;
mod host_settings;
mod lifecycle;
mod maintenance;
mod packages;
mod pods;
mod restarts;
mod states;
mod support;
mod takeover;
