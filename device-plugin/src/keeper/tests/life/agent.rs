//! The agent's part: what it remembers, and the node file that it writes.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use topology::distance::Distance;
use topology::machine::Machine;
use topology::node_file::{NodeFile, NodeResource, SCHEMA, devices};
use topology::partition::{Merged, Partition, ResourcePartition, merge, partition, restore};
use topology::policy::{NicSharing, ResourceKind, ResourcePolicy};

use crate::sample;

/// How long the agent takes an allocation for possible after it wrote the node file (`node-agent`, `handover`).
const UNDER_WAY: u64 = 3;

/// What an admin may ask for.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    limit: Distance,
    sharing: NicSharing,
    nics_per_gpu: u32,
    replicas: u32,
    kinds: [bool; 3],
    renamed: bool,
    keep_gpu: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            limit: Distance::Pxb,
            sharing: NicSharing::WhenScarce,
            nics_per_gpu: 1,
            replicas: 2,
            kinds: [true; 3],
            renamed: false,
            keep_gpu: false,
        }
    }
}

pub(super) fn setting() -> impl Strategy<Value = Setting> {
    let limits = [Distance::Pix, Distance::Pxb, Distance::Phb, Distance::Sys];
    let sharing = [NicSharing::WhenScarce, NicSharing::Never];
    let often = proptest::bool::weighted(0.8);
    (
        proptest::sample::select(limits.to_vec()),
        proptest::sample::select(sharing.to_vec()),
        (1..3_u32, 1..3_u32),
        [often, often, often],
        proptest::bool::weighted(0.3),
        any::<bool>(),
    )
        .prop_map(
            |(limit, sharing, counts, kinds, renamed, keep_gpu)| Setting {
                limit,
                sharing,
                nics_per_gpu: counts.0,
                replicas: counts.1,
                kinds,
                renamed,
                keep_gpu,
            },
        )
}

impl Setting {
    fn policies(&self) -> Vec<ResourcePolicy> {
        let kinds = [
            (ResourceKind::Pair, sample::RESOURCE),
            (ResourceKind::Gpu, "rdma/gpu"),
            (ResourceKind::SharedNic, "rdma/shared"),
        ];
        let asked = kinds.into_iter().zip(self.kinds).filter(|(_, on)| *on);
        let policy = |(kind, name)| ResourcePolicy {
            name: match kind {
                ResourceKind::Pair if self.renamed => "nvidia.com/gpu".to_owned(),
                _ => String::from(name),
            },
            kind,
            max_distance: self.limit,
            nics_per_gpu: self.nics_per_gpu,
            nic_sharing: self.sharing,
            replicas: self.replicas,
            ..ResourcePolicy::default()
        };
        asked.map(|(kind, _)| policy(kind)).collect()
    }
}

/// The agent's partition, on its disk.
#[derive(Default)]
enum Memory {
    #[default]
    None,
    Known(Partition),
    Broken,
}

#[derive(Default)]
pub(super) struct Agent {
    pub(super) setting: Setting,
    memory: Memory,
    written: u64,
}

/// The node file as the agent finds it.
enum Found {
    Nothing,
    Unusable,
    File(NodeFile),
}

fn find(path: &Path) -> Found {
    match std::fs::read_to_string(path).map(|text| NodeFile::parse(&text)) {
        Err(_) => Found::Nothing,
        Ok(Err(_)) => Found::Unusable,
        Ok(Ok(file)) => Found::File(file),
    }
}

impl Agent {
    pub(super) fn lose(&mut self) {
        self.memory = Memory::Broken;
    }

    pub(super) fn has_lost(&self) -> bool {
        matches!(self.memory, Memory::Broken)
    }

    /// The node file that should be, where these ids are held; remembers its partition.
    pub(super) fn turn(
        &mut self,
        path: &Path,
        machine: &Machine,
        held: &BTreeSet<String>,
        now: u64,
    ) -> NodeFile {
        let found = find(path);
        let Some(previous) = self.previous(&found, machine, held) else {
            return file(Vec::new());
        };
        let offered = self.offered(&found, &previous, now);
        let paths = machine.paths();
        let wanted = partition(machine, &paths, &self.setting.policies()).unwrap();
        let merged = merge(&previous, wanted, held, &offered);
        let resources = merged.partition.resources.iter();
        let resources = resources.map(|resource| self.resource(machine, resource, &merged));
        let file = file(resources.collect());
        self.memory = Memory::Known(merged.partition);
        file
    }

    /// As `node-agent`'s `previous`; nothing where nobody knows which parts were handed out.
    fn previous(
        &self,
        found: &Found,
        machine: &Machine,
        held: &BTreeSet<String>,
    ) -> Option<Partition> {
        let broken = matches!(self.memory, Memory::Broken);
        let named = |file: &NodeFile| {
            let devices = file.resources.iter().flat_map(|resource| &resource.devices);
            devices.map(|device| device.id.clone()).collect()
        };
        match (&self.memory, found) {
            (Memory::Known(partition), _) => Some(partition.clone()),
            (_, Found::File(file)) if broken && !held.is_subset(&named(file)) => None,
            (_, Found::File(file)) if broken || !held.is_empty() => Some(restore(file, machine)),
            (_, Found::Nothing | Found::Unusable) if broken && !held.is_empty() => None,
            _ => Some(Partition::default()),
        }
    }

    /// As `node-agent`'s `offered`.
    fn offered(&self, found: &Found, old: &Partition, now: u64) -> BTreeSet<String> {
        let heard = now - self.written >= UNDER_WAY;
        match found {
            Found::Nothing => BTreeSet::new(),
            Found::Unusable => ids(old).collect(),
            Found::File(file) => {
                let devices = file.resources.iter().flat_map(|resource| &resource.devices);
                let may = devices.filter(|device| device.admitted || !heard);
                may.map(|device| device.id.clone()).collect()
            }
        }
    }

    fn resource(
        &self,
        machine: &Machine,
        resource: &ResourcePartition,
        merged: &Merged,
    ) -> NodeResource {
        let mut built = devices(machine, &machine.paths(), resource);
        for device in &mut built {
            let mut parts = resource.devices.iter();
            let complete = parts.any(|part| part.id == device.id && part.missing.is_empty());
            device.admitted = complete && !merged.changing.contains(&device.id);
            device.cdi_devices = vec![format!("gpurdma.dev/pair={}", device.id)];
        }
        NodeResource {
            name: resource.name.clone(),
            kind: resource.kind,
            hold_down_seconds: 3,
            stable_up_seconds: 6,
            unhealthy_on_nic_down: !self.setting.keep_gpu,
            envs: Vec::new(),
            nic_lists: Vec::new(),
            devices: built,
        }
    }

    /// A file that says the same is left alone.
    pub(super) fn write(&mut self, path: &Path, file: &NodeFile, now: u64) {
        let text = file.to_json();
        if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
            return;
        }
        std::fs::write(path, text).unwrap();
        self.written = now;
    }
}

fn ids(partition: &Partition) -> impl Iterator<Item = String> {
    let resources = partition.resources.iter();
    resources.flat_map(|resource| resource.devices.iter().map(|device| device.id.clone()))
}

fn file(resources: Vec<NodeResource>) -> NodeFile {
    NodeFile {
        schema: SCHEMA.to_owned(),
        boot_id: sample::BOOT.to_owned(),
        node_uid: "0b7c9d3e-0000-4000-8000-000000000001".to_owned(),
        generation: 1,
        install_hash: "0".repeat(64),
        resources,
    }
}
