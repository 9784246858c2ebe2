//! Answers Allocate. Pure: a function of (resource, request, what the host shows at that moment); [`crate::service`] calls it.
//!
//! The kubelet takes whatever comes back, so everything it might ask wrongly is refused here by name.

use std::collections::{BTreeMap, BTreeSet};

use host::machine::verbs::VerbsOwner;
use serde::Serialize;
use topology::distance::Distance;
use topology::node_file::{DeviceNode, NicListForm, NodeDevice, NodeGpu, NodeNic};
use topology::policy::ResourceKind;

use crate::proto;
use crate::resource::Resource;
use crate::verbs::{self, Owned};

/// A request that is refused; the kubelet shows the text on the pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocateError {
    /// A container without devices.
    #[error("{resource}: no device id was asked for; ask for one or more")]
    Empty {
        /// Resource.
        resource: String,
    },
    /// The resource is not in the node file any more.
    #[error("{resource}: this node does not offer the resource any more")]
    Gone {
        /// Resource.
        resource: String,
    },
    /// An id of nobody.
    #[error("{resource}: unknown device id `{id}`; it is not in the node file of this node")]
    Unknown {
        /// Resource.
        resource: String,
        /// Device id.
        id: String,
    },
    /// The same id twice.
    #[error("{resource}: device id `{id}` was asked for twice")]
    Duplicate {
        /// Resource.
        resource: String,
        /// Device id.
        id: String,
    },
    /// A device that must not be used now.
    #[error("{resource}: device `{id}` is unhealthy: {why}")]
    Unhealthy {
        /// Resource.
        resource: String,
        /// Device id.
        id: String,
        /// Why.
        why: String,
    },
    /// A device node of it is another device's now.
    #[error("{resource}: device `{id}`: {why}")]
    Others {
        /// Resource.
        resource: String,
        /// Device id.
        id: String,
        /// What belongs to whom.
        why: String,
    },
}

/// What the host shows at the moment of the call.
pub struct Host<'a> {
    /// Whether a device node is there.
    pub present: &'a dyn Fn(&DeviceNode) -> bool,
    /// Who a uverbs device belongs to, by its number.
    pub owner: &'a dyn Fn(u32) -> VerbsOwner,
}

/// The variable that describes the chosen devices to the container; one name per kind, since the kubelet merges the
/// variables of all resources of a container.
#[must_use]
pub fn variable(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Pair => "GPURDMA_PAIRS",
        ResourceKind::Gpu => "GPURDMA_GPUS",
        ResourceKind::SharedNic => "GPURDMA_NICS",
    }
}

/// One answer per container, in the order of the request.
pub fn allocate(
    resource: &Resource,
    request: &proto::AllocateRequest,
    host: &Host<'_>,
) -> Result<proto::AllocateResponse, AllocateError> {
    let answer = |r: &proto::ContainerAllocateRequest| container(resource, &r.device_ids, host);
    let container_responses = request
        .container_requests
        .iter()
        .map(answer)
        .collect::<Result<_, _>>()?;
    Ok(proto::AllocateResponse {
        container_responses,
    })
}

fn container(
    resource: &Resource,
    ids: &[String],
    host: &Host<'_>,
) -> Result<proto::ContainerAllocateResponse, AllocateError> {
    let devices = check(resource, ids)?;
    check_owners(resource, &devices, host)?;
    Ok(proto::ContainerAllocateResponse {
        envs: variables(resource, &devices),
        devices: device_nodes(&devices, host.present),
        cdi_devices: cdi_devices(&devices),
        ..Default::default()
    })
}

/// The devices, in the order of their ids, if every one of them may be handed out.
fn check<'a>(resource: &'a Resource, ids: &[String]) -> Result<Vec<&'a NodeDevice>, AllocateError> {
    let name = || resource.plan().spec().name.clone();
    if ids.is_empty() {
        return Err(AllocateError::Empty { resource: name() });
    }
    let mut chosen = BTreeMap::new();
    for id in ids {
        let device = check_one(resource, id)?;
        if chosen.insert(id, device).is_some() {
            return Err(AllocateError::Duplicate {
                resource: name(),
                id: id.clone(),
            });
        }
    }
    Ok(chosen.into_values().collect())
}

fn check_one<'a>(resource: &'a Resource, id: &str) -> Result<&'a NodeDevice, AllocateError> {
    let (name, id) = (|| resource.plan().spec().name.clone(), id.to_owned());
    let Some(device) = resource.plan().device(&id) else {
        return Err(AllocateError::Unknown {
            resource: name(),
            id,
        });
    };
    match resource.trouble(&id) {
        Some(why) => Err(AllocateError::Unhealthy {
            resource: name(),
            id,
            why: why.to_owned(),
        }),
        None => Ok(device),
    }
}

fn check_owners(
    resource: &Resource,
    devices: &[&NodeDevice],
    host: &Host<'_>,
) -> Result<(), AllocateError> {
    for device in devices {
        for nic in &device.nics {
            if let Owned::Others(why) = verbs::judge(nic, host.owner) {
                return Err(AllocateError::Others {
                    resource: resource.plan().spec().name.clone(),
                    id: device.id.clone(),
                    why,
                });
            }
        }
    }
    Ok(())
}

fn variables(resource: &Resource, devices: &[&NodeDevice]) -> BTreeMap<String, String> {
    let spec = resource.plan().spec();
    let mut envs: BTreeMap<_, _> = spec
        .envs
        .iter()
        .map(|e| (e.name.clone(), e.value.clone()))
        .collect();
    for list in &spec.nic_lists {
        envs.extend(nic_list(list.form, devices).map(|nics| (list.name.clone(), nics)));
    }
    envs.insert(variable(spec.kind).to_owned(), describe(devices));
    envs
}

/// The NICs of the devices, each once; none where a reader needs a port that is not known.
fn nic_list(form: NicListForm, devices: &[&NodeDevice]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let mut met = BTreeSet::new();
    let nics = devices.iter().flat_map(|device| &device.nics);
    for nic in nics.filter(|nic| met.insert(&nic.rdma)) {
        match (nic.ports.as_slice(), form) {
            ([], NicListForm::Ports) => return None,
            ([], NicListForm::Exact) => names.push(nic.rdma.clone()),
            (ports, _) => names.extend(ports.iter().map(|port| format!("{}:{port}", nic.rdma))),
        }
    }
    let sign = match form {
        NicListForm::Exact => "=",
        NicListForm::Ports => "",
    };
    (!names.is_empty()).then(|| format!("{sign}{}", names.join(",")))
}

/// Device nodes of all devices, each once (pairs share `rdma_cm`), with the permissions of all who want it.
fn device_nodes(
    devices: &[&NodeDevice],
    present: &dyn Fn(&DeviceNode) -> bool,
) -> Vec<proto::DeviceSpec> {
    let mut nodes: BTreeMap<(&str, &str), BTreeSet<char>> = BTreeMap::new();
    for node in devices.iter().flat_map(|device| &device.device_nodes) {
        if !is_optional(node) || present(node) {
            let key = (node.container_path.as_str(), node.host_path.as_str());
            nodes
                .entry(key)
                .or_default()
                .extend(node.permissions.chars());
        }
    }
    nodes
        .into_iter()
        .map(|((container, host), permissions)| device_spec(container, host, &permissions))
        .collect()
}

fn device_spec(container: &str, host: &str, permissions: &BTreeSet<char>) -> proto::DeviceSpec {
    proto::DeviceSpec {
        container_path: container.to_owned(),
        host_path: host.to_owned(),
        permissions: ['r', 'w', 'm']
            .into_iter()
            .filter(|p| permissions.contains(p))
            .collect(),
    }
}

/// Without these nothing works, so a missing one must fail the container's start instead of its first use.
fn is_optional(node: &DeviceNode) -> bool {
    let path = node.host_path.as_str();
    let numbered = |prefix: &str| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let required = [
        "/dev/infiniband/rdma_cm",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
    ];
    !(required.contains(&path) || numbered("/dev/infiniband/uverbs") || numbered("/dev/nvidia"))
}

fn cdi_devices(devices: &[&NodeDevice]) -> Vec<proto::CdiDevice> {
    let names: BTreeSet<&String> = devices
        .iter()
        .flat_map(|device| &device.cdi_devices)
        .collect();
    names
        .into_iter()
        .map(|name| proto::CdiDevice { name: name.clone() })
        .collect()
}

/// A chosen device, as [`variable`] shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Chosen<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a NodeGpu>,
    nics: Vec<ChosenNic<'a>>,
    shared: bool,
}

#[derive(Serialize)]
struct ChosenNic<'a> {
    rdma: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<Distance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rail: Option<u32>,
}

impl<'a> From<&'a NodeDevice> for Chosen<'a> {
    fn from(device: &'a NodeDevice) -> Self {
        let nic = |n: &'a NodeNic| ChosenNic {
            rdma: &n.rdma,
            distance: n.distance,
            rail: n.rail,
        };
        Self {
            id: &device.id,
            gpu: device.gpu.as_ref(),
            nics: device.nics.iter().map(nic).collect(),
            shared: device.shared,
        }
    }
}

fn describe(devices: &[&NodeDevice]) -> String {
    let chosen: Vec<Chosen<'_>> = devices.iter().copied().map(Chosen::from).collect();
    // Strings, numbers and booleans always serialise; the fallback keeps the variable valid JSON.
    serde_json::to_string(&chosen).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
mod tests;
