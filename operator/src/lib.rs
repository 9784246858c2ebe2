//! The cluster side: which node belongs to which `GpuRdmaCluster`, which DaemonSets run, who may interrupt traffic
//! and when, and what the status says.
//!
//! One reconciliation is a pipeline, a file per step: [`gather`] (reads the caches) → [`validate`] (pure) →
//! [`assign`] and [`plan`] (pure, cannot fail) → [`apply`] (writes) → [`status`] (writes). [`rollout`] is the pure
//! state machine of maintenance, [`network`] gives nodes rails and addresses. [`controller`] drives it; [`install`] and [`uninstall`] are the chart's hooks.

pub mod addresses;
pub mod apply;
pub mod assign;
pub mod backoff;
pub mod cli;
pub mod components;
pub mod conditions;
pub mod config;
pub mod controller;
pub mod error;
pub mod events;
pub mod facts;
pub mod gather;
pub mod guarded;
pub mod health;
pub mod install;
pub mod kube_io;
pub mod labels;
pub mod leader;
pub mod ledger;
pub mod maintenance;
pub mod metrics;
pub mod network;
pub mod plan;
pub mod quantity;
pub mod rails;
pub mod rollout;
pub mod run;
pub mod status;
pub mod stores;
pub mod supported;
pub mod takeover;
pub mod uninstall;
pub mod validate;
pub mod views;

#[cfg(test)]
mod test_api;
