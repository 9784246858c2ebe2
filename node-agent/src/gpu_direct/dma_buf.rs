//! What DMA-BUF needs, against what the node has. The table says what is needed ([`crate::compat::matrix`]).
//!
//! A kernel without `CONFIG_PCI_P2PDMA` is a warning only: NVIDIA's open modules export without it, and only a
//! registration proves anything.

use crds::node::Finding;
use host::facts::driver::Flavour;
use topology::fact::Fact;
use topology::machine::Gpu;

use super::known;
use crate::compat::version::older;
use crate::findings::FindingId;
use crate::host_state::HostState;

/// Whether GPU memory can be exported as a DMA-BUF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DmaBuf {
    /// What is missing.
    pub lacks: Vec<String>,
    /// What could not be read.
    pub unknown: Vec<String>,
    /// Why it works, where it does.
    pub because: String,
    /// What was found on the way.
    pub findings: Vec<Finding>,
}

pub(super) fn dma_buf(state: &HostState, gpus: &[Gpu]) -> DmaBuf {
    let mut found = DmaBuf::default();
    let kernel = kernel(state, &mut found);
    let driver = driver(state, &mut found);
    products(state, gpus, &mut found);
    options(state, &mut found);
    found.because = format!("DMA-BUF works with kernel {kernel} and {driver}");
    found
}

fn kernel(state: &HostState, found: &mut DmaBuf) -> String {
    let row = &state.compat.dma_buf;
    let release = match known(&state.facts.kernel_release.fact, "the kernel's release") {
        Ok(release) => release,
        Err(why) => {
            found.unknown.push(why);
            return String::new();
        }
    };
    let carried = row
        .backports
        .iter()
        .any(|mark| release.contains(mark.as_str()));
    if older(release, &row.kernel) && !carried {
        found
            .lacks
            .push(format!("kernel {release} is older than {}", row.kernel));
    }
    release.clone()
}

fn driver(state: &HostState, found: &mut DmaBuf) -> String {
    let row = &state.compat.dma_buf;
    let driver = match &state.facts.gpu_driver.fact {
        Fact::Known(driver) => driver,
        Fact::Absent => {
            found.lacks.push("no GPU driver is loaded".to_owned());
            return String::new();
        }
        Fact::Unreadable(why) => {
            found
                .unknown
                .push(format!("the GPU driver cannot be read: {why}"));
            return String::new();
        }
    };
    if driver.flavour == Flavour::Proprietary {
        found.lacks.push(format!(
            "GPU driver {} runs the closed modules; DMA-BUF needs the open ones",
            driver.version
        ));
    }
    if older(&driver.version, &row.driver) {
        found.lacks.push(format!(
            "GPU driver {} is older than {}",
            driver.version, row.driver
        ));
    }
    let cuda = state.compat.cuda_of(&driver.version);
    if let Some(cuda) = cuda.filter(|cuda| older(cuda, &row.cuda)) {
        found.lacks.push(format!(
            "GPU driver {} speaks CUDA {cuda}, older than {}",
            driver.version, row.cuda
        ));
    }
    format!("the open GPU modules {}", driver.version)
}

fn products(state: &HostState, gpus: &[Gpu], found: &mut DmaBuf) {
    let mut products: Vec<&String> = gpus.iter().filter_map(|gpu| gpu.product.known()).collect();
    products.sort();
    products.dedup();
    for product in products {
        let Some(row) = state.compat.gpu(product) else {
            continue;
        };
        if !row.gpu_direct {
            let message = format!(
                "{product} has no GPU-direct RDMA: its user library refuses [row {}; {}]",
                row.id, row.source
            );
            found
                .findings
                .push(FindingId::GpuWithoutGpuDirect.about(product, message));
        }
        if !row.dma_buf {
            found
                .lacks
                .push(format!("{product} ({}) has no DMA-BUF", row.architecture));
        }
    }
}

fn options(state: &HostState, found: &mut DmaBuf) {
    let boot = &state.facts.install.boot;
    let option = |name: &str| boot.config.fact.known()?.get(name).map(String::as_str);
    if option("CONFIG_DMA_SHARED_BUFFER") == Some("n") {
        found
            .lacks
            .push("the kernel was built without CONFIG_DMA_SHARED_BUFFER".to_owned());
    }
    if option("CONFIG_PCI_P2PDMA") == Some("n") {
        let message = format!(
            "{} has no CONFIG_PCI_P2PDMA: a GPU driver that needs it exports no DMA-BUF; only a registration proves it. Use a kernel with it, or nvidia-peermem",
            boot.config.source
        );
        found
            .findings
            .push(FindingId::KernelWithoutP2pdma.about("kernel", message));
    }
    let parameters = state.facts.install.gpu.parameters.fact.known();
    let denied = parameters.and_then(|all| all.get("GrdmaPciTopoCheckOverride"));
    if denied.is_some_and(|value| value == "2") {
        found.lacks.push(
            "the GPU driver's parameter NVreg_GrdmaPciTopoCheckOverride=2 denies it".to_owned(),
        );
    }
}
