//! Tests of the whole agent over simulated nodes: turns of the loop, and the command line.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; the lint knows test functions only"
)]

mod ask;
mod changes;
mod cli;
mod common;
mod faults;
mod grant;
mod live;
mod reports;
mod state;
mod takeover;
mod turn;
