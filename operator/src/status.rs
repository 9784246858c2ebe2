//! The cluster's status. [`build`] is pure; [`write`] compares first and writes only what changed.

use std::collections::BTreeMap;

use crds::cluster::{NodeSummary, RailLayout};
use crds::names::GROUP;
use crds::{GpuRdmaCluster, GpuRdmaClusterStatus};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::assign::Assignments;
use crate::conditions::{self, Transition, shortened};
use crate::error::Error;
use crate::gather::Snapshot;
use crate::kube_io::{self, MANAGER};
use crate::network::Network;
use crate::rollout::Decision;
use crate::takeover;
use crate::validate::Validated;

mod standing;
mod wanted;

pub use standing::{PHASES, Standing, State};

/// Rows in `status.nodes`.
const MOST_ROWS: usize = 100;
/// Longest reason of a row that the CRD accepts.
const LONGEST_REASON: usize = 64;
/// Longest message of a row that the CRD accepts.
const LONGEST_MESSAGE: usize = 512;

/// What a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The cluster.
    pub cluster: &'a GpuRdmaCluster,
    /// The world.
    pub snapshot: &'a Snapshot,
    /// All clusters, checked.
    pub validated: &'a Validated,
    /// Who has which node.
    pub assignments: &'a Assignments,
    /// Maintenance of the cluster's nodes.
    pub maintenance: &'a [Decision],
    /// Nodes whose GPUs another device plugin has or had.
    pub takeover: &'a BTreeMap<String, takeover::Standing>,
    /// Rails and addresses of the cluster's nodes; none where nothing was decided about them.
    pub network: Option<&'a Network>,
    /// Why this reconciliation could not write everything.
    pub failure: Option<&'a str>,
}

/// A status and what is worth an Event.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// The status.
    pub status: GpuRdmaClusterStatus,
    /// Conditions whose status changed.
    pub transitions: Vec<Transition>,
    /// Nodes by phase, for the metrics.
    pub phases: BTreeMap<&'static str, i64>,
}

/// The status now.
#[must_use]
pub fn build(inputs: Inputs<'_>, now: Timestamp) -> Built {
    let name = inputs.cluster.name_any();
    let standings = standings(inputs, &name);
    let before = inputs
        .cluster
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let generation = inputs.cluster.metadata.generation;
    let wanted = wanted::conditions(inputs, &name, &standings);
    let (conditions, transitions) = conditions::upsert(before, wanted, generation, now);
    let count = |state: fn(&State) -> bool| {
        number(standings.iter().filter(|one| state(&one.state)).count())
    };
    let status = GpuRdmaClusterStatus {
        observed_generation: generation,
        matched: number(
            inputs
                .assignments
                .matched
                .get(&name)
                .map_or(0, std::collections::BTreeSet::len),
        ),
        conflicting: number(inputs.assignments.conflicting(&name)),
        not_applicable: count(|state| *state == State::NotApplicable),
        ready: count(|state| *state == State::Reached),
        pairs: standings
            .iter()
            .fold(0, |pairs: u32, one| pairs.saturating_add(one.pairs)),
        nodes: rows(&standings),
        rail_layouts: layouts(inputs),
        conditions,
    };
    Built {
        status,
        transitions,
        phases: phases(&standings),
    }
}

/// Layouts that were not looked at stay as they are.
fn layouts(inputs: Inputs<'_>) -> Vec<RailLayout> {
    let before = inputs.cluster.status.as_ref();
    let before = before.map(|status| &status.rail_layouts);
    let now = inputs.network.map(|network| &network.layouts);
    now.or(before).cloned().unwrap_or_default()
}

fn standings(inputs: Inputs<'_>, name: &str) -> Vec<Standing> {
    let decisions: BTreeMap<_, _> = inputs
        .maintenance
        .iter()
        .map(|one| (one.node.as_str(), one))
        .collect();
    let problem = |node: &str| {
        inputs
            .network
            .and_then(|network| network.problems.get(node))
    };
    inputs
        .assignments
        .nodes_of(name)
        .map(|node| {
            let object = inputs.snapshot.gpu_nodes.get(node).map(AsRef::as_ref);
            standing::of(
                inputs.cluster.spec.mode,
                node,
                object,
                decisions.get(node).copied(),
                inputs.takeover.get(node),
                problem(node),
            )
        })
        .collect()
}

/// Nodes that are not where the cluster wants them, by name.
fn rows(standings: &[Standing]) -> Vec<NodeSummary> {
    let behind = standings
        .iter()
        .filter(|one| !matches!(one.state, State::Reached | State::NotApplicable));
    behind
        .map(|one| NodeSummary {
            name: one.node.clone(),
            reason: shortened(one.reason.clone(), LONGEST_REASON),
            message: shortened(one.message.clone(), LONGEST_MESSAGE),
        })
        .take(MOST_ROWS)
        .collect()
}

fn phases(standings: &[Standing]) -> BTreeMap<&'static str, i64> {
    let mut counts = BTreeMap::new();
    for one in standings {
        *counts.entry(one.phase).or_insert(0) += 1;
    }
    counts
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Writes the status where it differs from what the cluster shows; says whether it did.
pub async fn write(
    client: &Client,
    cluster: &GpuRdmaCluster,
    status: &GpuRdmaClusterStatus,
) -> Result<bool, Error> {
    if cluster.status.as_ref() == Some(status) {
        return Ok(false);
    }
    let name = cluster.name_any();
    // Server-side apply, so that a list that became empty goes; the uid keeps it from touching a namesake.
    let patch = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "GpuRdmaCluster",
        "metadata": {"name": name, "uid": cluster.uid()},
        "status": status,
    });
    let params = PatchParams::apply(MANAGER).force();
    Api::<GpuRdmaCluster>::all(client.clone())
        .patch_status(&name, &params, &Patch::Apply(patch))
        .await
        .map_err(kube_io::failed(
            "write the status of",
            format!("GpuRdmaCluster {name}"),
        ))?;
    Ok(true)
}

#[cfg(test)]
mod tests;
