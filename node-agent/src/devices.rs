//! From the partition to devices that the plugin can hand out: admission, CDI names, rails and descriptions. Pure; the
//! part of [`crate::decide`] that is about devices.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster::{DevicePlugin, GpuDirect, OnNicDown};
use crds::node::Finding;
use crds::reasons::NodeReason;
use serde::Serialize;
use topology::fact::Fact;
use topology::machine::{Gpu, Machine, Nic};
use topology::nccl_xml;
use topology::node_file::{NodeDevice, NodeFile, NodeResource};
use topology::partition::{
    HardwareRef, Partition, PartitionDevice, ResourcePartition, gpu_key, nic_key,
};
use topology::paths::Paths;
use topology::pci::PciAddress;
use topology::policy::ResourceKind;

use crate::admission::{Admission, Case, Offer, Refusal, admit};
use crate::cdi;
use crate::compat::matrix::Matrix;
use crate::desired::Desired;
use crate::findings::FindingId;
use crate::foreign::Foreign;
use crate::gpu_direct::{Choice, refusal};
use crate::injection::{GpuInjection, Injection};
use crate::observed::Observed;
use crate::variables;

/// Seconds that a port must be down before its device turns Unhealthy.
const HOLD_DOWN_SECONDS: u32 = 30;
/// Seconds that a port must be up before its device turns Healthy again.
const STABLE_UP_SECONDS: u32 = 60;

/// What devices are decided on.
pub struct Context<'a> {
    /// The machine, roles and remembered UUIDs set.
    pub machine: &'a Machine,
    /// Its paths.
    pub paths: &'a Paths,
    /// What puts devices into containers.
    pub injection: &'a Injection,
    /// UUID → another advertiser.
    pub foreign: &'a BTreeMap<String, Foreign>,
    /// Whether the kubelet answered.
    pub kubelet_answered: bool,
    /// Ids of devices whose parts are about to change.
    pub changing: &'a BTreeSet<String>,
    /// Whether devices may be admitted that were not before.
    pub may_begin: bool,
    /// The node file of this boot.
    pub previous: Option<&'a NodeFile>,
    /// NIC → rail.
    pub rails: &'a BTreeMap<PciAddress, u32>,
    /// What is asked of the plugin.
    pub device_plugin: &'a DevicePlugin,
    /// Whether a pair needs a way to GPU memory.
    pub gpu_direct: Required<'a>,
}

/// Whether a pair needs a way to GPU memory, and what was found.
#[derive(Clone, Copy)]
pub struct Required<'a> {
    /// What was chosen.
    pub choice: &'a Choice,
    /// What is asked.
    pub asked: &'a GpuDirect,
    /// What goes with what.
    pub matrix: &'a Matrix,
}

impl<'a> Required<'a> {
    /// What is asked of a node, and what was chosen there.
    #[must_use]
    pub fn new(choice: &'a Choice, desired: &'a Desired, observed: &'a Observed) -> Self {
        Self {
            choice,
            asked: &desired.config.gpu_direct,
            matrix: &observed.state.compat,
        }
    }
}

/// Devices and what goes with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// Resources for the node file.
    pub resources: Vec<NodeResource>,
    /// Our CDI devices.
    pub cdi: Vec<cdi::Device>,
    /// CDI names of devices that are refused: what was written for them before stays as it is, because a container that
    /// holds one may start again, and its hardware cannot be described now.
    pub untouched: BTreeSet<String>,
    /// Path → text of each pair's description, and of the NCCL topology file.
    pub pair_files: BTreeMap<String, String>,
    /// Reasons of the devices that are refused.
    pub refused: BTreeSet<NodeReason>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// The description of a pair, for launchers in the container.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PairFile<'a> {
    schema: &'static str,
    resource: &'a str,
    id: &'a str,
    gpu: &'a Option<topology::node_file::NodeGpu>,
    nics: &'a [topology::node_file::NodeNic],
    shared: bool,
    numa_nodes: &'a [u32],
    reason: &'a str,
}

/// Everything about the devices of a partition.
#[must_use]
pub fn devices(context: &Context<'_>, partition: &Partition) -> Devices {
    let mut devices = Devices::default();
    for resource in &partition.resources {
        let built = context.resource(resource, &mut devices);
        devices.resources.push(built);
    }
    if context.device_plugin.inject.nccl_topo_file {
        let text = nccl_xml::write(context.machine);
        devices.pair_files.insert(cdi::topology_file(), text);
    }
    devices.cdi.sort_by(|a, b| a.name.cmp(&b.name));
    devices.cdi.dedup();
    devices
}

impl Context<'_> {
    fn resource(&self, partition: &ResourcePartition, out: &mut Devices) -> NodeResource {
        let parts: BTreeMap<&str, &PartitionDevice> = partition
            .devices
            .iter()
            .map(|part| (part.id.as_str(), part))
            .collect();
        let mut built = topology::node_file::devices(self.machine, self.paths, partition);
        for device in &mut built {
            if let Some(part) = parts.get(device.id.as_str()) {
                self.complete(partition, part, device, out);
            }
        }
        let pairs = partition.kind == ResourceKind::Pair;
        NodeResource {
            name: partition.name.clone(),
            kind: partition.kind,
            hold_down_seconds: HOLD_DOWN_SECONDS,
            stable_up_seconds: STABLE_UP_SECONDS,
            unhealthy_on_nic_down: self.device_plugin.on_nic_down == OnNicDown::Unhealthy,
            envs: variables::topology_file(&self.device_plugin.inject)
                .filter(|_| pairs)
                .into_iter()
                .collect(),
            nic_lists: variables::nic_lists(&self.device_plugin.inject)
                .filter(|_| pairs)
                .collect(),
            devices: built,
        }
    }

    fn complete(
        &self,
        resource: &ResourcePartition,
        part: &PartitionDevice,
        device: &mut NodeDevice,
        out: &mut Devices,
    ) {
        for nic in &mut device.nics {
            let pci = nic.pci.as_ref().and_then(|pci| pci.parse().ok());
            nic.rail = pci.and_then(|pci: PciAddress| self.rails.get(&pci).copied());
        }
        let nodes = self.nodes(part, out);
        let admission = self.admission(&resource.name, part, device, nodes.as_ref().err());
        let refused = match &admission {
            Admission::Refused(refusal) => Some(refusal),
            Admission::Admitted(_) | Admission::Waits(_) => None,
        };
        out.refused.extend(refused.map(|refusal| refusal.reason));
        // What cannot be put into a container is told even where another reason comes first: a takeover asks for it.
        let name = device.gpu.as_ref().map_or(&device.id, |gpu| &gpu.name);
        let told = refused.into_iter().chain(nodes.as_ref().err());
        let told: BTreeMap<_, _> = told
            .filter_map(|refusal| Some((refusal.finding?, &refusal.message)))
            .collect();
        out.findings.extend(
            told.into_iter()
                .map(|(id, message)| id.about(name, message)),
        );
        (device.admitted, device.reason) = admission.verdict();
        match (nodes, admission) {
            (Ok(nodes), Admission::Admitted(_) | Admission::Waits(_)) => {
                self.put(resource, device, nodes, out);
            }
            (Err(_), _) | (_, Admission::Refused(_)) => {
                out.untouched
                    .insert(cdi::name(&cdi_id(resource.kind, &device.id)));
            }
        }
    }

    fn admission(
        &self,
        resource: &str,
        part: &PartitionDevice,
        device: &NodeDevice,
        injection: Option<&Refusal>,
    ) -> Admission {
        let uuid = device.gpu.as_ref().and_then(|gpu| gpu.uuid.as_ref());
        let gpu = self.gpu_there(part);
        let paired = gpu.filter(|_| !part.nics.is_empty());
        admit(&Case {
            uuid: gpu.map(|gpu| &gpu.uuid),
            unreachable: paired.and_then(|gpu| {
                let Required {
                    choice,
                    asked,
                    matrix,
                } = self.gpu_direct;
                refusal(choice, asked, matrix, gpu)
            }),
            missing: &part.missing,
            injection: injection.map_or(Ok(()), |refusal| Err(refusal.clone())),
            foreign: uuid.and_then(|uuid| self.foreign.get(uuid)),
            // A NIC has no other advertiser to ask about.
            kubelet_answered: self.kubelet_answered || device.gpu.is_none(),
            was_admitted: self.was_admitted(resource, &device.id),
            offer: self.offer(&device.id),
        })
    }

    fn offer(&self, id: &str) -> Offer {
        match self.may_begin {
            _ if self.changing.contains(id) => Offer::ChangesHands,
            true => Offer::Free,
            false => Offer::AsBefore,
        }
    }

    fn was_admitted(&self, resource: &str, id: &str) -> bool {
        let resources = self.previous.into_iter().flat_map(|file| &file.resources);
        let mut devices = resources
            .filter(|r| r.name == resource)
            .flat_map(|r| &r.devices);
        devices.any(|device| device.id == id && device.admitted)
    }

    /// Names the CDI devices and adds ours.
    fn put(
        &self,
        resource: &ResourcePartition,
        device: &mut NodeDevice,
        nodes: Nodes,
        out: &mut Devices,
    ) {
        let cdi_id = cdi_id(resource.kind, &device.id);
        device.cdi_devices = [cdi::qualified(&cdi_id)]
            .into_iter()
            .chain(nodes.toolkit)
            .collect();
        let mut files = Vec::new();
        if resource.kind != ResourceKind::SharedNic {
            let file = cdi::pair_file(&cdi_id);
            out.pair_files
                .insert(file.clone(), description(resource, device));
            files.push(file);
        }
        if resource.kind == ResourceKind::Pair && self.device_plugin.inject.nccl_topo_file {
            files.push(cdi::topology_file());
        }
        out.cdi.push(cdi::device(&cdi_id, nodes.own, files));
    }

    /// Device nodes for our own CDI device, and the toolkit's device where there is one. Every part is looked up by its
    /// key: `GPU3` is a position, and names another GPU once one before it is gone.
    fn nodes(&self, part: &PartitionDevice, out: &mut Devices) -> Result<Nodes, Refusal> {
        if let Some(missing) = part.missing.first() {
            return Err(refuse_absent(missing));
        }
        let mut nodes = Nodes::default();
        for nic in &part.nics {
            let nic = self.nic(nic).ok_or_else(|| refuse_absent(&nic.name))?;
            let own = self.injection.nic(nic).map_err(|why| refuse_nic(&why))?;
            nodes.own.extend(own);
        }
        let Some(gpu) = &part.gpu else {
            return Ok(nodes);
        };
        let gpu = self.gpu(gpu).ok_or_else(|| refuse_absent(&gpu.name))?;
        match self.injection.gpu(gpu) {
            GpuInjection::Toolkit(name) => nodes.toolkit = Some(name),
            GpuInjection::Nodes(own) => {
                nodes.own.extend(own);
                let message = "no CDI specification of the NVIDIA container toolkit names this GPU: pods get its device nodes but no driver libraries. Run `nvidia-ctk cdi generate`, or install the toolkit";
                out.findings
                    .push(FindingId::GpuCdiSpecAbsent.about(gpu.name(), message));
            }
            GpuInjection::Unavailable(why) => return Err(refuse_gpu(&why)),
        }
        Ok(nodes)
    }

    fn gpu(&self, part: &HardwareRef) -> Option<&Gpu> {
        let mut gpus = self.machine.gpus.iter();
        gpus.find(|gpu| gpu_key(gpu) == part.key)
    }

    /// The GPU of a device or, where that has no UUID now, the one in its place.
    fn gpu_there(&self, part: &PartitionDevice) -> Option<&Gpu> {
        let part = part.gpu.as_ref()?;
        let in_place = |gpu: &&Gpu| part.pci.is_some() && gpu.pci == part.pci;
        let mut gpus = self.machine.gpus.iter();
        self.gpu(part).or_else(|| gpus.find(in_place))
    }

    fn nic(&self, part: &HardwareRef) -> Option<&Nic> {
        let mut nics = self.machine.nics.iter();
        nics.find(|nic| nic_key(self.machine, nic) == part.key)
    }
}

/// What puts one device into a container.
#[derive(Default)]
struct Nodes {
    own: Vec<String>,
    toolkit: Option<String>,
}

/// A part that is not there although nothing marked it missing: the partition is an old one that still holds.
fn refuse_absent(part: &str) -> Refusal {
    Refusal {
        reason: NodeReason::PairsRefused,
        finding: None,
        message: format!("{part} is not there any more"),
    }
}

fn refuse_nic(why: &str) -> Refusal {
    let finding = Some(FindingId::RdmaInjectionUnavailable);
    Refusal {
        reason: NodeReason::DriverNotLoaded,
        finding,
        message: why.to_owned(),
    }
}

fn refuse_gpu(why: &str) -> Refusal {
    let message = format!(
        "{why}, and no CDI specification of the NVIDIA container toolkit names the GPU: load the driver's modules (nvidia-modprobe), or run `nvidia-ctk cdi generate`"
    );
    let finding = Some(FindingId::GpuInjectionUnavailable);
    Refusal {
        reason: NodeReason::GpuInjectionUnavailable,
        finding,
        message,
    }
}

/// Copies of a NIC share one CDI device.
fn cdi_id(kind: ResourceKind, id: &str) -> String {
    match id.rsplit_once('-') {
        Some((nic, _)) if kind == ResourceKind::SharedNic => nic.to_owned(),
        _ => id.to_owned(),
    }
}

fn description(resource: &ResourcePartition, device: &NodeDevice) -> String {
    let file = PairFile {
        schema: "1.1",
        resource: &resource.name,
        id: &device.id,
        gpu: &device.gpu,
        nics: &device.nics,
        shared: device.shared,
        numa_nodes: &device.numa_nodes,
        reason: &device.pair_reason,
    };
    // Nothing in the type can fail to be JSON: its keys are field names and it has no floats.
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

/// Gives GPUs whose UUID cannot be read the one that they had on this boot: a read error takes no admission back.
pub fn remember_uuids(machine: &mut Machine, previous: Option<&NodeFile>) -> Vec<Finding> {
    let known: BTreeMap<&str, &String> = previous
        .into_iter()
        .flat_map(|file| &file.resources)
        .flat_map(|resource| &resource.devices)
        .filter_map(|device| device.gpu.as_ref())
        .filter_map(|gpu| Some((gpu.pci.as_str(), gpu.uuid.as_ref()?)))
        .collect();
    let mut findings = Vec::new();
    for gpu in &mut machine.gpus {
        let Fact::Unreadable(why) = &gpu.uuid else {
            continue;
        };
        let pci = gpu.pci.map(|pci| pci.to_string()).unwrap_or_default();
        let uuid = known.get(pci.as_str());
        let meanwhile = if uuid.is_some() {
            "until it can be read, its last UUID of this boot counts"
        } else {
            "until it can be read, the GPU is not handed out"
        };
        let message = format!("{why}; {meanwhile}");
        findings.push(FindingId::GpuUuidUnreadable.about(gpu.name(), message));
        if let Some(uuid) = uuid {
            gpu.uuid = Fact::Known((*uuid).clone());
        }
    }
    findings
}
