//! Turns `GpuRdmaCluster` objects into [`Cluster`]s that the rest can trust. Pure; errors end here: a cluster that
//! cannot be understood keeps the nodes it has and says why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::cluster::{DeletionPolicy, DriverContainer, DriverSource, Mode, Upgrade};
use crds::node::NodeConfig;
use crds::texts::wrong_texts;
use crds::{GpuRdmaCluster, GpuRdmaClusterSpec};
use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use crate::facts::NodeFacts;
use crate::{rollout, supported};

mod ranges;
mod selector;

/// Label that the kubelet sets to the operating system.
pub const OS_LABEL: &str = "kubernetes.io/os";

/// A cluster whose specification makes sense.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Name.
    pub name: String,
    /// When it was made: the older of two equals has a node that neither had before.
    pub created: Option<Timestamp>,
    /// Being deleted: its nodes are released.
    pub deleting: bool,
    /// How far to go.
    pub mode: Mode,
    /// No new actions.
    pub paused: bool,
    /// Decides between clusters.
    pub priority: i32,
    /// Its nodes, for matching.
    pub selector: Selector,
    /// Its nodes, as written.
    pub label_selector: LabelSelector,
    /// What the nodes get.
    pub config: NodeConfig,
    /// Hash of what is installed.
    pub install_hash: String,
    /// Extended resources that it advertises.
    pub resources: BTreeSet<String>,
    /// The driver container, where the driver comes from one.
    pub driver: Option<DriverContainer>,
    /// How changes roll.
    pub upgrade: Upgrade,
    /// How long pods are waited for; none: for ever.
    pub wait_timeout: Option<SignedDuration>,
    /// What becomes of the hosts on deletion.
    pub deletion_policy: DeletionPolicy,
    /// Fields in use whose effect is not built yet.
    pub not_yet: Vec<&'static str>,
    /// Address range of each rail.
    pub ranges: BTreeMap<u32, IpNet>,
}

impl Cluster {
    /// Whether the selector takes this node: Linux nodes only.
    #[must_use]
    pub fn matches(&self, node: &NodeFacts) -> bool {
        node.labels.get(OS_LABEL).map(String::as_str) == Some("linux")
            && self.selector.matches(&node.labels)
    }

    /// The selector as `kubectl --selector` takes it.
    #[must_use]
    pub fn selector_text(&self) -> String {
        if self.selector.selects_all() {
            format!("{OS_LABEL}=linux")
        } else {
            self.selector.to_string()
        }
    }
}

/// Why a cluster cannot be acted on.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// The selector cannot be understood.
    #[error(
        "spec.nodeSelector {selector}: use the operators In and NotIn with values, Exists and DoesNotExist without"
    )]
    Selector {
        /// The selector, in JSON.
        selector: String,
        /// What is wrong with it.
        #[source]
        source: kube::core::ParseExpressionError,
    },
    /// `Exists` or `DoesNotExist` with values, or `In` and `NotIn` with none.
    #[error("spec.nodeSelector.matchExpressions {key} {operator} has {count} values: {remedy}")]
    Values {
        /// The label.
        key: String,
        /// The operator.
        operator: String,
        /// How many values it has.
        count: usize,
        /// How many it should have.
        remedy: &'static str,
    },
    /// A label's key that no label can have.
    #[error(
        "spec.nodeSelector.{field} has the key {key:?}: write a name of at most 63 letters, digits, - _ and ., with a \
         DNS domain and / before it where wanted, such as pool or example.org/pool"
    )]
    LabelKey {
        /// Where below the selector.
        field: &'static str,
        /// The key.
        key: String,
    },
    /// A label's value that no label can have.
    #[error(
        "spec.nodeSelector.{field} has for {key} the value {value:?}: write at most 63 letters, digits, - _ and ., \
         such as gpu"
    )]
    LabelValue {
        /// Where below the selector.
        field: &'static str,
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A container is wanted and none is named.
    #[error(
        "spec.driver.container is absent but spec.driver.source is Container: name repository, image and version"
    )]
    NoContainer,
    /// Neither a number nor a percentage.
    #[error(
        "spec.upgrade.maxUnavailable is {value:?}: give a number such as 1, or a percentage such as 25%"
    )]
    MaxUnavailable {
        /// What it is.
        value: String,
    },
    /// No duration.
    #[error(
        "spec.upgrade.waitTimeout is {value:?}: write hours, minutes and seconds, such as 90s, 30m or 1h30m; omit it to \
         wait for ever"
    )]
    WaitTimeout {
        /// What it is.
        value: String,
    },
    /// No range of host addresses.
    #[error(
        "spec.fabric.addresses of rail {rail} is {cidr:?}: write a range of unicast addresses, such as 10.10.0.0/16 or \
         fd00:10::/64"
    )]
    Range {
        /// The rail.
        rail: u32,
        /// What it is.
        cidr: String,
    },
    /// Two rails with addresses in common.
    #[error(
        "spec.fabric.addresses overlap: {one} of rail {rail} and {other} of rail {other_rail}. Give each rail a range of \
         its own"
    )]
    Overlap {
        /// The range.
        one: IpNet,
        /// Its rail.
        rail: u32,
        /// The other range.
        other: IpNet,
        /// Its rail.
        other_rail: u32,
    },
    /// A text that no rule of the CRD would let pass.
    #[error("spec.{0}")]
    Text(#[from] crds::texts::WrongText),
    /// What is stored is not what the types know.
    #[error(
        "the stored object cannot be read: {reason}. Correct it (kubectl edit), or install the operator's CRDs again"
    )]
    Unreadable {
        /// What the deserialiser said.
        reason: String,
    },
    /// The configuration has no hash.
    #[error("the configuration has no canonical form")]
    Hash(#[source] serde_json::Error),
}

/// Clusters that make sense, by name, and those that do not, with the reason.
#[derive(Debug, Default)]
pub struct Validated {
    /// Make sense.
    pub clusters: Vec<Cluster>,
    /// Do not, by name.
    pub invalid: Vec<(String, Invalid)>,
}

impl Validated {
    /// A cluster by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name == name)
    }

    /// Why a cluster makes no sense.
    #[must_use]
    pub fn reason(&self, name: &str) -> Option<&Invalid> {
        self.invalid
            .iter()
            .find(|(invalid, _)| invalid == name)
            .map(|(_, reason)| reason)
    }

    /// Names of the clusters that make no sense: their nodes stay as they are.
    #[must_use]
    pub fn frozen(&self) -> BTreeSet<&str> {
        self.invalid.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// With clusters that cannot even be read, by name: absent is not deleted, their nodes stay as they are.
    #[must_use]
    pub fn with_unreadable(mut self, unreadable: &BTreeMap<String, String>) -> Self {
        let invalid = unreadable.iter().map(|(name, reason)| {
            let reason = reason.clone();
            (name.clone(), Invalid::Unreadable { reason })
        });
        self.invalid.extend(invalid);
        self.invalid.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self
    }

    /// Clusters that stay.
    pub fn living(&self) -> impl Iterator<Item = &Cluster> {
        self.clusters.iter().filter(|cluster| !cluster.deleting)
    }
}

/// Checks every cluster; the result is in the order of names.
#[must_use]
pub fn validate(clusters: &[Arc<GpuRdmaCluster>]) -> Validated {
    let mut validated = Validated::default();
    for cluster in clusters {
        match check(cluster) {
            Ok(valid) => validated.clusters.push(valid),
            // On its way out it releases its nodes, whatever its specification says.
            Err(_) if cluster.metadata.deletion_timestamp.is_some() => {}
            Err(reason) => validated.invalid.push((cluster.name_any(), reason)),
        }
    }
    validated
        .clusters
        .sort_unstable_by(|a, b| a.name.cmp(&b.name));
    validated.invalid.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    validated
}

fn check(object: &GpuRdmaCluster) -> Result<Cluster, Invalid> {
    let spec = &object.spec;
    check_max_unavailable(&spec.upgrade.max_unavailable)?;
    let config = resolve(spec);
    let cluster = Cluster {
        name: object.name_any(),
        created: object
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0),
        deleting: object.metadata.deletion_timestamp.is_some(),
        mode: spec.mode,
        paused: spec.paused,
        priority: spec.priority,
        selector: selector::selector(&spec.node_selector)?,
        label_selector: spec.node_selector.clone(),
        install_hash: crds::hash::install_hash(&config).map_err(Invalid::Hash)?,
        resources: spec
            .device_plugin
            .resources
            .iter()
            .map(|resource| resource.name.clone())
            .collect(),
        driver: driver(spec)?,
        wait_timeout: wait_timeout(spec.upgrade.wait_timeout.as_deref())?,
        upgrade: spec.upgrade.clone(),
        deletion_policy: spec.deletion_policy,
        not_yet: supported::not_yet(spec),
        ranges: ranges::ranges(&spec.fabric.addresses)?,
        config,
    };
    match wrong_texts(&cluster.config).into_iter().next() {
        Some(wrong) => Err(wrong.into()),
        None => Ok(cluster),
    }
}

fn check_max_unavailable(value: &IntOrString) -> Result<(), Invalid> {
    match value {
        IntOrString::String(text) if rollout::slots(value, 0).is_none() => {
            Err(Invalid::MaxUnavailable {
                value: text.clone(),
            })
        }
        IntOrString::Int(_) | IntOrString::String(_) => Ok(()),
    }
}

fn wait_timeout(text: Option<&str>) -> Result<Option<SignedDuration>, Invalid> {
    let Some(text) = text else { return Ok(None) };
    let duration = text.parse().ok().filter(SignedDuration::is_positive);
    duration.map(Some).ok_or_else(|| Invalid::WaitTimeout {
        value: text.to_owned(),
    })
}

/// The configuration of a node, as far as it is the same for all.
fn resolve(spec: &GpuRdmaClusterSpec) -> NodeConfig {
    NodeConfig {
        driver: spec.driver.clone(),
        gpu_direct: spec.gpu_direct.clone(),
        nics: spec.nics.clone(),
        fabric: spec.fabric.clone(),
        tuning: spec.tuning.clone(),
        device_plugin: spec.device_plugin.clone(),
        rails: Vec::new(),
        addresses: Vec::new(),
    }
}

fn driver(spec: &GpuRdmaClusterSpec) -> Result<Option<DriverContainer>, Invalid> {
    match spec.driver.source {
        DriverSource::Existing | DriverSource::HostPackages => Ok(None),
        DriverSource::Container => spec
            .driver
            .container
            .clone()
            .map(Some)
            .ok_or(Invalid::NoContainer),
    }
}

#[cfg(test)]
pub(crate) mod tests;
