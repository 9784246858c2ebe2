//! The plugin against a kubelet over real Unix sockets. The numbers in the tests' names are the points of the kubelet's
//! device plugin protocol that they hold.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub
)]

mod authority;
mod calls;
#[path = "../../../topology/tests/support/damage.rs"]
mod damage;
mod damaged;
mod fake;
mod junk;
mod listing;
mod node;
mod page;
mod prefer;
mod process;
mod registration;
mod reports;
mod restart;
#[path = "../support/sample.rs"]
mod sample;
