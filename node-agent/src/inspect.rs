//! What is odd about a node whatever is asked of it: findings, never actions. Pure; [`crate::decide`] and the command line
//! call it.
//!
//! Only what is known speaks. What cannot be read says nothing here, nor does what a virtual machine shows of its host.

mod fabric;
mod links;
mod stack;

use crds::node::Finding;
use topology::machine::{Machine, Nic, NicRole};

use crate::host_state::HostState;
use crate::injection::Injection;

/// Everything that is odd. `machine` has its roles; `injection` is `None` where nobody looked at device nodes.
#[must_use]
pub fn findings(
    state: &HostState,
    machine: &Machine,
    injection: Option<&Injection>,
) -> Vec<Finding> {
    let mut found = links::findings(state, machine);
    found.extend(fabric::findings(state, machine));
    found.extend(stack::findings(state, machine, injection));
    found
}

/// NICs for GPU traffic.
fn compute(machine: &Machine) -> impl Iterator<Item = &Nic> {
    let nics = machine.nics.iter();
    nics.filter(|nic| nic.role == NicRole::Compute)
}

#[cfg(test)]
mod tests;
