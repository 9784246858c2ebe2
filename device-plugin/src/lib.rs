//! Kubelet device plugin (v1beta1) for GPU+NIC pairs.
//!
//! | pure | does IO |
//! |---|---|
//! | [`accept`] which node files are taken, [`knowledge`] what is believed from one to the next, [`link`] when a port changes a device's health, [`verbs`] whether a device node is still its NIC's, [`resource`] the list, [`allocate`] and [`prefer`] the answers | `serve` puts the tasks together: `ports`, `owners`, `keeper` (the only writer), one `session` per resource with its `endpoint` and `service`; `kubelet` registers |
//!
//! The node file is the only configuration; the plugin knows neither Kubernetes' API nor the hardware.

pub mod accept;
pub mod allocate;
pub mod capture;
pub mod cli;
pub mod discover;
pub mod doctor;
pub mod endpoint;
pub mod identity;
mod instance;
mod keeper;
pub mod knowledge;
pub mod kubelet;
pub mod link;
mod owners;
pub mod ports;
pub mod prefer;
pub mod proto;
pub mod pulse;
pub mod resource;
pub mod serve;
mod service;
mod session;
pub mod timing;
pub mod verbs;

#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;
