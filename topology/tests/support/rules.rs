//! Why a computed distance differs from a reported one: rules that follow from what a machine file is and from what it
//! tells, each with its source. No rule names a machine.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use topology::distance::{Distance, DistanceSource};
use topology::fact::Fact;
use topology::file::{Completeness, MachineFile};
use topology::machine::{Gpu, Nic, PciKind, PciParent};

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The file's PHB is NCCL's.
    NcclHasNoHostBridge,
    /// Whoever printed the matrix saw other NUMA nodes than the kernel.
    NumaOfWhoLooked,
    /// What lies between the switch and the GPU is not in the file.
    PathNotTold,
    /// The NUMA node is not in the file.
    NumaNotTold,
}

/// A reported distance between a GPU and a NIC, and the computed one.
#[derive(Clone, Copy)]
pub struct Difference<'a> {
    pub file: &'a MachineFile,
    pub gpu: &'a Gpu,
    pub nic: &'a Nic,
    pub reported: Distance,
    pub computed: Distance,
}

impl Rule {
    /// In the order of their numbers.
    pub const ALL: [Self; 4] = [
        Self::NcclHasNoHostBridge,
        Self::NumaOfWhoLooked,
        Self::PathNotTold,
        Self::NumaNotTold,
    ];

    /// Its number in the documentation.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    /// What it says, and who says so.
    pub fn text(self) -> &'static str {
        match self {
            Self::NcclHasNoHostBridge => {
                "**PHB of an NCCL topology file is NODE.** NCCL has one `cpu` element per NUMA node and none per host \
                 bridge, so what runs through one `cpu` may be PHB or NODE: we say NODE, the farther of the two, which \
                 is all that the file proves. Applies to trees of NCCL topology files. Source: NCCL `src/graph/xml.cc` \
                 (`cpu` is keyed by `numa_node`) and `topo.cc`"
            }
            Self::NumaOfWhoLooked => {
                "**A printed NODE or SYS is that of who looked.** Whether two host bridges are of one NUMA node is said \
                 by the kernel's `numa_node`; `nvidia-smi` goes by the CPU set that it runs in, by sub-NUMA settings and \
                 by `numa=off`, and prints SYS throughout on Grace. PIX, PXB and PHB come from the tree and are the \
                 same in every view. Applies where a file has both a tree and a matrix. Source: the same Leonardo \
                 node outside and inside a job (NVIDIA/nccl-tests#331), GB200 in kubernetes-sigs/dranet \
                 `examples/oci_oke_examples/BM.GPU.GB200-v3.4`"
            }
            Self::PathNotTold => {
                "**PIX where the file does not tell what is in front of the GPU.** The GPU stands directly below a \
                 switch's upstream port, which no kernel shows: the downstream port, and any bridge after it, are not \
                 in the source. The computed PIX counts the switches that are told; the reported PXB counts one more \
                 in front of an SXM GPU. On a running machine `/sys` has them all. Source: NVIDIA/ncx-infra-controller-core \
                 `nvidia_dgx_h100.rs` has bus ids of GPUs only; openucx/ucx#9908 prints paths of NICs only"
            }
            Self::NumaNotTold => {
                "**Unknown where no NUMA node is told.** Two host bridges can be NODE or SYS; without a NUMA node on \
                 both sides we say neither. Applies where the file leaves out `numa`. Source: the kernel's \
                 `Documentation/ABI/testing/sysfs-bus-pci` (`numa_node`, -1 for none)"
            }
        }
    }

    /// Whether the rule is the reason.
    pub fn explains(self, of: &Difference<'_>) -> bool {
        let levels = (of.reported, of.computed);
        match self {
            Self::NcclHasNoHostBridge => {
                of.file.source_kind == "nccl-topo-xml" && levels == (Distance::Phb, Distance::Node)
            }
            Self::NumaOfWhoLooked => {
                let tie = [Distance::Node, Distance::Sys];
                printed(of.file) && tie.contains(&levels.0) && tie.contains(&levels.1)
            }
            Self::PathNotTold => {
                levels == (Distance::Pxb, Distance::Pix)
                    && of.file.completeness == Completeness::SwitchesOnly
                    && below_an_upstream_port(of)
            }
            Self::NumaNotTold => {
                let silent = |numa: &Fact<u32>| matches!(numa, Fact::Unreadable(_));
                levels == (Distance::Sys, Distance::Unknown)
                    && (silent(&of.gpu.numa) || silent(&of.nic.numa))
            }
        }
    }
}

impl Difference<'_> {
    /// The one rule that explains it.
    pub fn rule(&self) -> Option<Rule> {
        let mut rules = Rule::ALL.into_iter().filter(|rule| rule.explains(self));
        let first = rules.next();
        first.filter(|_| rules.next().is_none())
    }
}

/// Whether the file's distances are those of a printed matrix beside a tree.
fn printed(file: &MachineFile) -> bool {
    let stated = file.machine.stated.as_ref();
    file.completeness != Completeness::None
        && stated.is_some_and(|stated| stated.source == DistanceSource::Matrix)
}

/// One switch is one node in the trees of NCCL topology files, so there a GPU stands below it as it should.
fn below_an_upstream_port(of: &Difference<'_>) -> bool {
    let functions = &of.file.machine.functions;
    let parent = of
        .gpu
        .pci
        .and_then(|pci| functions.get(&pci))
        .map(|function| &function.parent);
    let Some(PciParent::Bridge(above)) = parent else {
        return false;
    };
    of.file.source_kind != "nccl-topo-xml"
        && functions
            .get(above)
            .is_some_and(|bridge| bridge.kind == PciKind::SwitchUpstream)
}
