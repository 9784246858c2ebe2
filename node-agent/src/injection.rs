//! What puts a GPU or NIC into a container: the NVIDIA toolkit's CDI specification where it names the GPU, else the
//! device nodes themselves. Pure; [`crate::gather`] reads the files, [`crate::admission`] and [`crate::cdi`] decide on it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::machine::{Gpu, Nic};

/// Kind of the toolkit's specifications.
pub const GPU_KIND: &str = "nvidia.com/gpu";

/// What there is on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Injection {
    /// Device names of kind `nvidia.com/gpu` in the host's CDI specifications.
    pub toolkit: BTreeSet<String>,
    /// Device nodes that are there, of those that [`wanted_nodes`] names.
    pub nodes: BTreeSet<String>,
    /// CDI files that could not be read or understood, and why.
    pub unreadable: BTreeMap<String, String>,
}

/// How a GPU gets into a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuInjection {
    /// By the toolkit's CDI device of this full name.
    Toolkit(String),
    /// By these device nodes.
    Nodes(Vec<String>),
    /// Not at all, and why.
    Unavailable(String),
}

/// The fields of a CDI specification that tell which devices it has.
#[derive(Deserialize)]
struct Outline {
    kind: String,
    #[serde(default)]
    devices: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Device names of kind `nvidia.com/gpu` in a specification, YAML or JSON (which is YAML too).
pub fn toolkit_devices(text: &str) -> Result<Vec<String>, serde_yaml::Error> {
    let outline: Outline = serde_yaml::from_str(text)?;
    let ours = outline.kind == GPU_KIND;
    Ok(outline
        .devices
        .into_iter()
        .filter(|_| ours)
        .map(|device| device.name)
        .collect())
}

/// Device nodes worth looking for.
#[must_use]
pub fn wanted_nodes(gpus: &[Gpu], nics: &[Nic]) -> BTreeSet<String> {
    let gpus = gpus
        .iter()
        .filter_map(|gpu| gpu.minor.known())
        .map(|m| format!("/dev/nvidia{m}"));
    let nics = nics
        .iter()
        .filter_map(|nic| nic.uverbs.known())
        .map(|&n| uverbs(n));
    let common = [CTL, UVM, UVM_TOOLS, RDMA_CM].map(str::to_owned);
    gpus.chain(nics).chain(common).collect()
}

const CTL: &str = "/dev/nvidiactl";
const UVM: &str = "/dev/nvidia-uvm";
const UVM_TOOLS: &str = "/dev/nvidia-uvm-tools";
/// The device node of RDMA-CM.
pub const RDMA_CM: &str = "/dev/infiniband/rdma_cm";

fn uverbs(number: u32) -> String {
    format!("/dev/infiniband/uverbs{number}")
}

impl Injection {
    /// How `gpu` gets into a container.
    #[must_use]
    pub fn gpu(&self, gpu: &Gpu) -> GpuInjection {
        if let Some(uuid) = gpu.uuid.known().filter(|uuid| self.toolkit.contains(*uuid)) {
            return GpuInjection::Toolkit(format!("{GPU_KIND}={uuid}"));
        }
        let Some(minor) = gpu.minor.known() else {
            return GpuInjection::Unavailable("its minor number is not known".to_owned());
        };
        let own = format!("/dev/nvidia{minor}");
        if let Some(absent) = [own.as_str(), CTL]
            .into_iter()
            .find(|n| !self.nodes.contains(*n))
        {
            return GpuInjection::Unavailable(format!("{absent} is absent"));
        }
        let present = |node: &&str| self.nodes.contains(*node);
        let further = [UVM, UVM_TOOLS]
            .into_iter()
            .filter(present)
            .map(str::to_owned);
        GpuInjection::Nodes([own, CTL.to_owned()].into_iter().chain(further).collect())
    }

    /// Device nodes of `nic`; the error says why there are none.
    pub fn nic(&self, nic: &Nic) -> Result<Vec<String>, String> {
        let node = match &nic.uverbs {
            Fact::Known(number) => uverbs(*number),
            Fact::Absent => {
                return Err(format!(
                    "{} has no uverbs device: load ib_uverbs",
                    nic.name()
                ));
            }
            Fact::Unreadable(why) => return Err(format!("uverbs of {}: {why}", nic.name())),
        };
        if !self.nodes.contains(&node) {
            return Err(format!("{node} of {} is absent", nic.name()));
        }
        let cm = Some(RDMA_CM.to_owned()).filter(|cm| self.nodes.contains(cm));
        Ok([node].into_iter().chain(cm).collect())
    }
}
