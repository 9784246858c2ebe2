//! How GPU memory is made reachable for the NIC on this node: DMA-BUF or nvidia-peermem, and why. Pure; called by
//! [`crate::planner`] for the action and by [`crate::decide`] for the condition and for admission.
//!
//! "Installed", "loaded" and "fits" are three things. A module that is loaded counts as working, whatever `modprobe`
//! would say; one that is not is loaded only where it was built against the RDMA driver that runs.

mod dma_buf;
mod peermem;

use crds::cluster::{GpuDirect, GpuDirectMode};
use crds::node::Finding;
use crds::reasons::NodeReason;
use topology::fact::Fact;
use topology::machine::Gpu;

pub use dma_buf::DmaBuf;
pub use peermem::Peermem;

use crate::admission::Refusal;
use crate::compat::matrix::Matrix;
use crate::findings::FindingId;
use crate::host_state::HostState;

/// A way to GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// DMA-BUF: the kernel's own.
    DmaBuf,
    /// nvidia-peermem: a module between the GPU driver and OFED.
    Peermem,
}

/// Whether there is a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This one.
    Way(Way),
    /// This one, once nvidia-peermem is loaded.
    AfterLoad,
    /// Something that decides could not be read.
    Unknown,
    /// None.
    Nothing,
}

/// What was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Whether there is a way.
    pub reach: Reach,
    /// Why.
    pub reason: String,
    /// What was found on the way.
    pub findings: Vec<Finding>,
}

/// Chooses for a node.
#[must_use]
pub fn choose(state: &HostState, gpus: &[Gpu], asked: &GpuDirect) -> Choice {
    let dma_buf = dma_buf::dma_buf(state, gpus);
    let peermem = peermem::peermem(state);
    let (reach, reason) = match asked.mode {
        GpuDirectMode::Keep => keep(&dma_buf, &peermem),
        GpuDirectMode::Auto => auto(&dma_buf, &peermem),
        GpuDirectMode::DmaBuf => only_dma_buf(&dma_buf),
        GpuDirectMode::Peermem => only_peermem(&peermem),
    };
    let mut findings = peermem::stale(state, &peermem);
    if asked.mode != GpuDirectMode::Keep {
        findings.extend(dma_buf.findings.iter().cloned());
        findings.extend(peermem::remarks(&peermem, &reach));
        findings.extend(unreachable(&reach, &reason));
    }
    Choice {
        reach,
        reason,
        findings,
    }
}

fn unreachable(reach: &Reach, reason: &str) -> Option<Finding> {
    let id = match reach {
        Reach::Nothing => FindingId::GpuDirectUnavailable,
        Reach::Unknown => FindingId::GpuDirectUnknown,
        Reach::Way(_) | Reach::AfterLoad => return None,
    };
    Some(id.about("gpuDirect", reason))
}

/// What is there, without doing anything.
fn keep(dma_buf: &DmaBuf, peermem: &Peermem) -> (Reach, String) {
    if *peermem == Peermem::Loaded {
        return (
            Reach::Way(Way::Peermem),
            "nvidia-peermem is loaded".to_owned(),
        );
    }
    match only_dma_buf(dma_buf) {
        (Reach::Nothing, why) => (
            Reach::Nothing,
            format!("DMA-BUF: {why}; nvidia-peermem is not loaded"),
        ),
        found => found,
    }
}

/// DMA-BUF where the node offers it: it needs no module that must fit two drivers at once.
fn auto(dma_buf: &DmaBuf, peermem: &Peermem) -> (Reach, String) {
    let (first, why) = only_dma_buf(dma_buf);
    if let Reach::Way(_) = first {
        return (first, why);
    }
    let (second, why_not) = only_peermem(peermem);
    match (first, second) {
        (_, found @ (Reach::Way(_) | Reach::AfterLoad)) => {
            (found, format!("{why_not}; DMA-BUF: {why}"))
        }
        (Reach::Unknown, _) | (_, Reach::Unknown) => (
            Reach::Unknown,
            format!("DMA-BUF: {why}; nvidia-peermem: {why_not}"),
        ),
        _ => (
            Reach::Nothing,
            format!("DMA-BUF: {why}; nvidia-peermem: {why_not}"),
        ),
    }
}

fn only_dma_buf(dma_buf: &DmaBuf) -> (Reach, String) {
    if !dma_buf.lacks.is_empty() {
        return (Reach::Nothing, dma_buf.lacks.join(", "));
    }
    if !dma_buf.unknown.is_empty() {
        return (Reach::Unknown, dma_buf.unknown.join(", "));
    }
    (Reach::Way(Way::DmaBuf), dma_buf.because.clone())
}

fn only_peermem(peermem: &Peermem) -> (Reach, String) {
    let reach = match peermem {
        Peermem::Loaded => Reach::Way(Way::Peermem),
        Peermem::Loadable => Reach::AfterLoad,
        Peermem::Unknown(_) => Reach::Unknown,
        Peermem::NotOffered
        | Peermem::Owned
        | Peermem::NotInstalled
        | Peermem::BuiltWithout
        | Peermem::BuiltForOther => Reach::Nothing,
    };
    (reach, peermem.to_string())
}

/// Why a GPU must not be handed out where `gpuDirect.required` is set: only what is known speaks against it.
#[must_use]
pub fn refusal(choice: &Choice, asked: &GpuDirect, matrix: &Matrix, gpu: &Gpu) -> Option<Refusal> {
    if !asked.required {
        return None;
    }
    let product = gpu.product.known().map(String::as_str);
    let row = product.and_then(|product| matrix.gpu(product));
    let message = match (row, &choice.reach) {
        (Some(row), _) if !row.gpu_direct => {
            format!(
                "gpuDirect.required is set and {} has no GPU-direct RDMA",
                product.unwrap_or_default()
            )
        }
        (_, Reach::Nothing) => format!(
            "gpuDirect.required is set and there is no way to GPU memory: {}",
            choice.reason
        ),
        (_, Reach::AfterLoad) => {
            "gpuDirect.required is set and nvidia-peermem is not loaded yet".to_owned()
        }
        (_, Reach::Way(_) | Reach::Unknown) => return None,
    };
    Some(Refusal {
        reason: NodeReason::GpuDirectUnavailable,
        finding: None,
        message,
    })
}

/// Whether the files of nvidia-peermem and `ib_core` on disk fit each other, whatever is loaded.
pub fn files_fit(state: &HostState) -> Result<Peermem, String> {
    peermem::files_fit(state)
}

/// A fact's value, or why there is none, in words.
fn known<'a, T>(fact: &'a Fact<T>, what: &str) -> Result<&'a T, String> {
    match fact {
        Fact::Known(value) => Ok(value),
        Fact::Absent => Err(format!("{what} is not there")),
        Fact::Unreadable(why) => Err(format!("{what} cannot be read: {why}")),
    }
}

#[cfg(test)]
mod tests;
