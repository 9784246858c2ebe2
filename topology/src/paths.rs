//! How every GPU and NIC of a machine are connected, from the PCIe ancestry and NUMA nodes of `/sys`.
//!
//! Pure. Pairing, partition, preferred allocation and the reports read it. The rule reproduces `nvidia-smi topo -m`:
//! count the switches on the path; none or one is PIX, more is PXB; else the same host bridge is PHB, the same NUMA
//! node NODE, another one SYS. Where neither ancestry nor NUMA node tells, the distance is `Unknown`.
//!
//! A distance that somebody stated (a printed matrix, a topology file) fills the cells that `/sys` leaves unknown.
//! Two cases go further, because NODE and SYS would rest on NUMA numbers alone: a device that the tree does not have
//! (a machine known by its matrix), and a device without any bridge above it (Hyper-V and Xen guests), which shows
//! nothing of its ancestry; there a topology file, and only that, may say more.

use std::collections::BTreeMap;

use crate::distance::{Cells, Distance, DistanceSource, NcclPath, Path};
use crate::machine::{Gpu, Machine, Nic};
use ancestry::{Ancestry, Place};

mod ancestry;

/// The path between every two devices, by their index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paths {
    gpu_nic: BTreeMap<(usize, usize), Path>,
    gpu_gpu: BTreeMap<(usize, usize), Path>,
    nic_nic: BTreeMap<(usize, usize), Path>,
}

impl Paths {
    /// The path between a GPU and a NIC; `None` if the machine has no such device.
    #[must_use]
    pub fn gpu_nic(&self, gpu: usize, nic: usize) -> Option<&Path> {
        self.gpu_nic.get(&(gpu, nic))
    }

    /// The path between two GPUs; `None` for the same GPU twice, or one that the machine does not have.
    #[must_use]
    pub fn gpu_gpu(&self, a: usize, b: usize) -> Option<&Path> {
        self.gpu_gpu.get(&(a.min(b), a.max(b)))
    }

    /// The path between two NICs; `None` for the same NIC twice, or one that the machine does not have.
    #[must_use]
    pub fn nic_nic(&self, a: usize, b: usize) -> Option<&Path> {
        self.nic_nic.get(&(a.min(b), a.max(b)))
    }

    /// The distance between a GPU and a NIC, `Unknown` for a device that is not there.
    #[must_use]
    pub fn distance(&self, gpu: usize, nic: usize) -> Distance {
        self.gpu_nic(gpu, nic)
            .map_or(Distance::Unknown, |path| path.distance)
    }

    /// Names the file that stands in the place of `/sys`.
    fn come_from(&mut self, source: &DistanceSource) {
        let all = [&mut self.gpu_nic, &mut self.gpu_gpu, &mut self.nic_nic];
        for path in all.into_iter().flat_map(BTreeMap::values_mut) {
            if path.source == DistanceSource::Sysfs && path.distance != Distance::Unknown {
                path.source = source.clone();
            }
        }
    }
}

impl Machine {
    /// Computes how every two devices are connected.
    #[must_use]
    pub fn paths(&self) -> Paths {
        let ancestry = Ancestry::new(&self.functions);
        let gpus: BTreeMap<usize, Place> = self
            .gpus
            .iter()
            .map(|gpu| (gpu.index, gpu_place(&ancestry, gpu)))
            .collect();
        let nics: BTreeMap<usize, Place> = self
            .nics
            .iter()
            .map(|nic| (nic.index, nic_place(&ancestry, nic)))
            .collect();
        let stated = |cells: fn(&crate::distance::StatedDistances) -> &Cells| {
            self.stated
                .as_ref()
                .map(|stated| (cells(stated), &stated.source))
        };
        let mut paths = Paths {
            gpu_nic: across(&gpus, &nics, stated(|s| &s.cells)),
            gpu_gpu: within(&gpus, stated(|s| &s.gpu_cells)),
            nic_nic: within(&nics, stated(|s| &s.nic_cells)),
        };
        for gpu in self.gpus.iter().filter(|gpu| is_superchip(gpu)) {
            name_c2c_paths(&mut paths, gpu, &gpus, &nics);
        }
        if let Some(file) = &self.tree_file {
            paths.come_from(&DistanceSource::TopologyFile(file.path.clone()));
        }
        paths
    }
}

fn gpu_place(ancestry: &Ancestry<'_>, gpu: &Gpu) -> Place {
    ancestry.place(gpu.pci, None, &gpu.numa)
}

fn nic_place(ancestry: &Ancestry<'_>, nic: &Nic) -> Place {
    ancestry.place(nic.pci, nic.physfn, &nic.numa)
}

type Stated<'a> = Option<(&'a Cells, &'a DistanceSource)>;
type Places = BTreeMap<usize, Place>;

fn across(left: &Places, right: &Places, stated: Stated<'_>) -> BTreeMap<(usize, usize), Path> {
    let mut paths = BTreeMap::new();
    for (&i, a) in left {
        for (&j, b) in right {
            paths.insert((i, j), path(a, b, cell(stated, i, j)));
        }
    }
    paths
}

fn within(places: &Places, stated: Stated<'_>) -> BTreeMap<(usize, usize), Path> {
    let mut paths = BTreeMap::new();
    for (&i, a) in places {
        for (&j, b) in places.range(i + 1..) {
            let said = cell(stated, i, j).or_else(|| cell(stated, j, i));
            paths.insert((i, j), path(a, b, said));
        }
    }
    paths
}

fn cell(stated: Stated<'_>, i: usize, j: usize) -> Option<(Distance, &DistanceSource)> {
    let (cells, source) = stated?;
    Some((*cells.get(&i)?.get(&j)?, source))
}

fn path(a: &Place, b: &Place, said: Option<(Distance, &DistanceSource)>) -> Path {
    let shown = a.path_to(b);
    let Some((distance, source)) = said.filter(|(distance, _)| *distance != Distance::Unknown)
    else {
        return shown;
    };
    let no_tree = a.is_absent() || b.is_absent();
    let hidden = (a.is_bare() || b.is_bare()) && matches!(source, DistanceSource::TopologyFile(_));
    let by_numa_alone = shown.distance >= Distance::Node && (no_tree || hidden);
    if shown.distance == Distance::Unknown || by_numa_alone {
        return Path {
            distance,
            hops: None,
            nccl: nccl_name(distance),
            source: source.clone(),
        };
    }
    shown
}

/// NCCL's name of a plain PCIe path: it has one CPU vertex per NUMA node, so NODE is PHB to it.
fn nccl_name(distance: Distance) -> Option<NcclPath> {
    match distance {
        Distance::Pix => Some(NcclPath::Pix),
        Distance::Pxb => Some(NcclPath::Pxb),
        Distance::Phb | Distance::Node => Some(NcclPath::Phb),
        Distance::Sys => Some(NcclPath::Sys),
        Distance::Unknown => None,
    }
}

/// Grace superchips reach their own CPU's NICs over C2C, whatever PCIe says.
fn is_superchip(gpu: &Gpu) -> bool {
    let product = gpu.product.known().map_or("", String::as_str);
    ["GH200", "GB200", "GB300"]
        .iter()
        .any(|name| product.contains(name))
}

fn name_c2c_paths(paths: &mut Paths, gpu: &Gpu, gpus: &Places, nics: &Places) {
    let Some(own) = gpus.get(&gpu.index).and_then(Place::numa) else {
        return;
    };
    for (&nic, place) in nics {
        let Some(path) = paths.gpu_nic.get_mut(&(gpu.index, nic)) else {
            continue;
        };
        if path.distance >= Distance::Phb && place.numa() == Some(own) {
            path.nccl = Some(NcclPath::P2c);
        }
    }
}

#[cfg(test)]
mod tests;
