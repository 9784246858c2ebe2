//! The privileged per-node agent: reads the host, decides, acts, verifies, reports.
//!
//! One file per step: [`gather`] reads, [`decide`] is pure, [`apply`] and [`execute`] write, [`report`] builds the status;
//! [`cycle`] is one turn of all and [`run`] the loop. What a decision is made of has a pure file each: [`desired`],
//! [`planner`], [`evidence`], [`previous`], [`settle`], [`devices`], [`admission`], [`foreign`], [`cdi`], [`inspect`],
//! [`conditions`].
//! Only [`store`] writes to the host and only [`host::program`] starts a process.

pub mod action;
pub mod admission;
pub mod apply;
pub mod asked;
pub mod attempts;
pub mod cdi;
pub mod cli;
pub mod compat;
pub mod conditions;
pub mod cycle;
pub mod decide;
pub mod desired;
pub mod devices;
pub mod evidence;
pub mod execute;
pub mod findings;
pub mod firewall_rules;
pub mod foreign;
pub mod gather;
pub mod gpu_direct;
pub mod guard;
pub mod handover;
pub mod held;
pub mod host_state;
pub mod injection;
pub mod inspect;
pub mod job;
pub mod journal;
pub mod lock;
pub mod maintenance;
pub mod modules;
pub mod observed;
pub mod openib_conf;
pub mod others;
pub mod own_nics;
pub mod packages;
pub mod planner;
pub mod podresources;
pub mod policies;
pub mod previous;
pub mod protected;
pub mod proto;
pub mod rates;
pub mod reader;
pub mod reboot;
pub mod render;
pub mod report;
pub mod roles;
pub mod run;
pub mod session;
pub mod settings;
pub mod settle;
pub(crate) mod state_files;
pub mod store;
#[cfg(test)]
pub(crate) mod test_network;
pub mod tools;
pub mod users;
pub mod variables;
pub mod watch;
