//! Node files for tests: one resource of pairs whose GPU and NIC are n and n.

use topology::distance::Distance;
use topology::node_file::{
    DeviceLink, DeviceNode, EnvVar, NodeDevice, NodeFile, NodeGpu, NodeNic, NodeResource, SCHEMA,
};
use topology::policy::ResourceKind;

/// Boot id of [`node_file`].
pub(crate) const BOOT: &str = "5f0c1c4e-7f0b-4a7e-9a53-0d0c6e1b7a11";
/// Resource of [`node_file`].
pub(crate) const RESOURCE: &str = "rdma/gpudirect";

/// Id of the n-th pair.
pub(crate) fn id(n: usize) -> String {
    format!("GPU-{n:08x}-aaaa-bbbb-cccc-0123456789ab")
}

/// Ids of several pairs.
pub(crate) fn ids(which: &[usize]) -> Vec<String> {
    which.iter().copied().map(id).collect()
}

/// A node file with one resource of `count` admitted pairs; pairs 2k and 2k+1 have `NVLinks` between them.
pub(crate) fn node_file(count: usize) -> NodeFile {
    NodeFile {
        schema: SCHEMA.to_owned(),
        boot_id: BOOT.to_owned(),
        node_uid: "0b7c9d3e-0000-4000-8000-000000000001".to_owned(),
        generation: 1,
        install_hash: "0".repeat(64),
        resources: vec![resource(RESOURCE, count)],
    }
}

/// A resource of `count` admitted pairs.
pub(crate) fn resource(name: &str, count: usize) -> NodeResource {
    NodeResource {
        name: name.to_owned(),
        kind: ResourceKind::Pair,
        hold_down_seconds: 30,
        stable_up_seconds: 60,
        unhealthy_on_nic_down: true,
        nic_lists: Vec::new(),
        envs: vec![EnvVar {
            name: "NCCL_IB_HCA".to_owned(),
            value: "=mlx5_0".to_owned(),
        }],
        devices: (0..count).map(|n| device(n, count)).collect(),
    }
}

/// The n-th pair of `count`.
pub(crate) fn device(n: usize, count: usize) -> NodeDevice {
    NodeDevice {
        id: id(n),
        gpu: Some(NodeGpu {
            name: format!("GPU{n}"),
            uuid: Some(id(n)),
            pci: format!("0000:{:02x}:00.0", n + 16),
        }),
        nics: vec![nic(n)],
        shared: false,
        numa_nodes: vec![u32::from(n >= count / 2)],
        cdi_devices: vec![
            format!("gpurdma.dev/pair={n}"),
            format!("nvidia.com/gpu={}", id(n)),
        ],
        device_nodes: vec![
            node("/dev/infiniband/rdma_cm"),
            node(&format!("/dev/infiniband/uverbs{n}")),
        ],
        links: (0..count)
            .filter(|other| *other != n)
            .map(|other| link(n, other))
            .collect(),
        admitted: true,
        verified: true,
        reason: "all checks passed".to_owned(),
        pair_reason: "closest NIC".to_owned(),
    }
}

fn nic(n: usize) -> NodeNic {
    NodeNic {
        rdma: format!("mlx5_{n}"),
        pci: Some(format!("0000:{:02x}:00.0", n + 64)),
        uverbs: u32::try_from(n).ok(),
        ports: vec![1],
        distance: Some(Distance::Pix),
        rail: u32::try_from(n).ok(),
    }
}

/// A node that is the same outside and inside.
pub(crate) fn node(path: &str) -> DeviceNode {
    DeviceNode {
        host_path: path.to_owned(),
        container_path: path.to_owned(),
        permissions: "rw".to_owned(),
    }
}

fn link(from: usize, to: usize) -> DeviceLink {
    let partners = from / 2 == to / 2;
    DeviceLink {
        to: id(to),
        nvlinks: if partners { 4 } else { 0 },
        distance: if partners {
            Distance::Pix
        } else {
            Distance::Sys
        },
        same_numa: Some(partners),
    }
}
