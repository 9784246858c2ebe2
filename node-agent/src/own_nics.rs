//! NICs that are the node's own, remembered for the boot in which they were seen to be. Pure; [`crate::decide`] calls it.
//!
//! A route that comes and goes must not move a NIC in and out of pairs: what was seen once in a boot counts until its end.
//! Not to see it, or not to be able to look, takes nothing back. A NIC of a pair leaves it as any other does, once the
//! pair is free.

use std::collections::BTreeSet;

use crds::node::Finding;
use serde::{Deserialize, Serialize};
use topology::machine::{Machine, NicRole};
use topology::partition::nic_key;

use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::observed::Observed;
use crate::protected::protected;

/// The node's own NICs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnNics {
    /// The boot in which they were seen.
    pub boot_id: String,
    /// Their keys.
    pub nics: BTreeSet<String>,
    /// Key and reason of those that are seen now.
    #[serde(skip)]
    seen: Vec<(String, String)>,
}

impl OwnNics {
    /// What is known once the network was looked at.
    #[must_use]
    pub fn learn(observed: &Observed) -> Self {
        let before = observed.before.kept.as_ref().map(|kept| &kept.own);
        Self::of(&observed.state, &observed.machine, before)
    }

    /// The same, from what was read and what is remembered.
    #[must_use]
    pub fn of(state: &HostState, machine: &Machine, before: Option<&Self>) -> Self {
        let before = before.filter(|own| own.boot_id == state.boot_id);
        let protected = protected(&state.facts.network, machine, &state.node_addresses);
        let own = |nic| Some((nic_key(machine, nic), protected.own(nic)?.to_string()));
        let seen: Vec<_> = machine.nics.iter().filter_map(own).collect();
        let mut nics = before.map(|own| own.nics.clone()).unwrap_or_default();
        nics.extend(seen.iter().map(|(key, _)| key.clone()));
        Self {
            boot_id: if nics.is_empty() {
                String::new()
            } else {
                state.boot_id.clone()
            },
            nics,
            seen,
        }
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nics.is_empty()
    }

    /// Why NICs of `machine`, whose roles are given, are not for pods.
    #[must_use]
    pub fn findings(&self, machine: &Machine) -> Vec<Finding> {
        let of = |(key, why): &(String, String)| {
            let mut nics = machine.nics.iter();
            let nic = nics.find(|nic| nic_key(machine, nic) == *key)?;
            let message = format!(
                "it {why}, so its role is Management and it is in no pair; a rule of `nics` can say otherwise"
            );
            (nic.role == NicRole::Management)
                .then(|| FindingId::ManagementInterface.about(nic.name(), message))
        };
        self.seen.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests;
