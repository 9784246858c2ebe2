//! The only IO edge: reads a machine's `/sys` and `/proc` under one explicit [`root::Root`], and starts programs
//! ([`program`]).
//!
//! [`machine::machine`] gives what pairing needs, [`facts::facts`] everything that the node agent reports. The device
//! plugin uses the same readers for ports. What cannot be read is a fact of its own, never a failure.

#[cfg(feature = "fixture")]
pub mod capture;
pub mod facts;
#[cfg(feature = "fixture")]
pub mod fixture;
pub mod machine;
#[cfg(feature = "nvml")]
pub mod nvml;
mod parse;
pub mod program;
pub mod root;
