//! How many nodes may be out of service at a time, and which are. Pure.
//!
//! As the field does it: a node that is not Ready or that someone cordoned is out of service already and takes a slot;
//! a cordoned node may itself be maintained without taking another one, within the same number of nodes at a time.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{NodeView, Unavailable};

/// Nodes that may be under maintenance at a time: a number, or a percentage rounded down; at least one. None where it
/// is neither.
#[must_use]
pub fn slots(max_unavailable: &IntOrString, nodes: usize) -> Option<usize> {
    let count = match max_unavailable {
        IntOrString::Int(count) => usize::try_from(*count).unwrap_or(0),
        IntOrString::String(text) => {
            let percent: usize = text.strip_suffix('%')?.parse().ok()?;
            if percent > 100 {
                return None;
            }
            nodes.saturating_mul(percent) / 100
        }
    };
    Some(count.max(1))
}

/// The slots and who has them.
#[derive(Debug)]
pub(super) struct Slots {
    total: usize,
    maintained: BTreeSet<String>,
    out: BTreeMap<String, &'static str>,
}

impl Slots {
    pub(super) fn of(total: usize, nodes: &[NodeView]) -> Self {
        let maintained = nodes.iter().filter(|node| node.in_maintenance());
        let maintained: BTreeSet<_> = maintained.map(|node| node.name.clone()).collect();
        let out = nodes.iter().filter_map(|node| {
            let why = match node.unavailable {
                _ if maintained.contains(&node.name) => "maintenance",
                Some(_) if !node.is_applicable() => return None,
                Some(Unavailable::NotReady) => "not Ready",
                Some(Unavailable::Cordoned) => "cordoned",
                None => return None,
            };
            Some((node.name.clone(), why))
        });
        Self {
            total,
            out: out.collect(),
            maintained,
        }
    }

    /// Takes a slot for a node, if there is one.
    pub(super) fn take(&mut self, node: &NodeView) -> bool {
        let out_already = node.unavailable == Some(Unavailable::Cordoned);
        let room = out_already || self.out.len() < self.total;
        let free = room && self.maintained.len() < self.total;
        if free {
            self.maintained.insert(node.name.clone());
            self.out.insert(node.name.clone(), "maintenance");
        }
        free
    }

    /// Who has the slots, with the reason, for people.
    pub(super) fn taken(&self) -> Vec<String> {
        let text = |(name, why): (&String, &&str)| format!("{name} ({why})");
        self.out.iter().map(text).collect()
    }

    pub(super) const fn total(&self) -> usize {
        self.total
    }
}
