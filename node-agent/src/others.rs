//! Other device plugins on the node, with what is remembered of them and what the operator has done about them. Pure;
//! [`crate::decide`] calls it.

use std::collections::{BTreeMap, BTreeSet};

use crds::node::{GpuPlugin, OtherAdvertiser};
use k8s_openapi::jiff::Timestamp;
use topology::machine::Machine;
use topology::node_file::NodeFile;

use crate::foreign::{self, Foreign, ForeignMemory};
use crate::observed::{Before, Observed};
use crate::settings::NODE_FILE;

/// Other device plugins on the node.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// UUID of a GPU → who else advertises it.
    pub foreign: BTreeMap<String, Foreign>,
    /// What is remembered of them.
    pub memory: ForeignMemory,
    /// Each of them, for the operator.
    pub advertisers: Vec<OtherAdvertiser>,
    /// Resources of ours that one of them advertises under the same name. Registered under one name, the kubelet would mix
    /// the lists of the two and ask the one that came last.
    pub namesakes: BTreeSet<String>,
}

impl Others {
    /// Who is there at `now`. Ours are the `names` of our resources and the ids that may be `offered` of them.
    #[must_use]
    pub fn look(
        observed: &Observed,
        gpu_plugin: GpuPlugin,
        machine: &Machine,
        (names, offered): (&BTreeSet<String>, &BTreeSet<String>),
        now: Timestamp,
    ) -> Self {
        let gpus = foreign::driver_gpus(machine);
        let evidence = &observed.kubelet;
        let offered = is_known(&observed.before).then_some(offered);
        let mut seen = foreign::namesakes(evidence, names, offered, &gpus);
        if let Some(kubelet) = evidence.shown() {
            for (uuid, resources) in foreign::seen(kubelet, names, &gpus) {
                seen.entry(uuid).or_default().extend(resources);
            }
        }
        let before = observed.before.kept.as_ref().map(|kept| &kept.foreign);
        let memory = before
            .unwrap_or(&ForeignMemory::default())
            .step(&seen, evidence, now);
        let memory = match gpu_plugin {
            GpuPlugin::AsFound => memory,
            GpuPlugin::SwitchedOff => memory.without_nvidia(&seen, evidence),
            GpuPlugin::ComesBack => memory.with_nvidia(&gpus),
        };
        let resources = memory.entries().map(|(resource, _)| resource);
        Self {
            namesakes: resources
                .filter(|name| names.contains(*name))
                .cloned()
                .collect(),
            advertisers: foreign::advertisers(&memory, evidence.shown()),
            foreign: foreign::foreign(seen, &memory),
            memory,
        }
    }

    /// A node file for the plugin: without the resources that another plugin has.
    #[must_use]
    pub fn without_namesakes(&self, mut file: NodeFile) -> NodeFile {
        file.resources
            .retain(|resource| !self.namesakes.contains(&resource.name));
        file
    }
}

/// Whether it is known what we may have on offer: a node file that is there, or nothing that ever was.
fn is_known(before: &Before) -> bool {
    before.node_file.is_some() || (before.kept.is_none() && !before.unusable.contains(NODE_FILE))
}
