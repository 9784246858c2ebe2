//! The partition that holds from now on. Pure; [`crate::decide`] calls it.

use std::collections::BTreeSet;

use crds::node::Finding;
use topology::machine::Machine;
use topology::partition::{self, Deferred, Partition};
use topology::paths::Paths;

use crate::desired::Desired;
use crate::findings::FindingId;
use crate::held::Held;
use crate::policies::policies;
use crate::previous::Previous;
use crate::settings::PARTITION_FILE;

/// What a change of the partition has to respect.
#[derive(Clone, Debug)]
pub struct Standing<'a> {
    /// What holds so far.
    pub previous: &'a Previous,
    /// What containers hold.
    pub held: &'a Held,
    /// What the kubelet may hand out behind the agent's back.
    pub offered: &'a BTreeSet<String>,
}

/// What holds from now on.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// The partition; `None` where nothing may be handed out.
    pub partition: Option<Partition>,
    /// Devices whose parts change in a later turn.
    pub changing: BTreeSet<String>,
    /// What was found on the way.
    pub findings: Vec<Finding>,
}

impl<'a> Standing<'a> {
    /// What a change has to respect.
    #[must_use]
    pub fn new(previous: &'a Previous, held: &'a Held, offered: &'a BTreeSet<String>) -> Self {
        Self {
            previous,
            held,
            offered,
        }
    }

    /// What the hardware and the resources that are asked for give, merged into what is in use.
    #[must_use]
    pub fn settle(&self, desired: &Desired, machine: &Machine, paths: &Paths) -> Settled {
        if *self.previous == Previous::Lost {
            let message = "the file cannot be used and containers may hold devices: which parts they have is not known, so nothing is handed out until they have ended";
            return stays(
                None,
                FindingId::StateUnreadable.about(PARTITION_FILE, message),
            );
        }
        let asked = policies(&desired.config.device_plugin.resources);
        match partition::partition(machine, paths, &asked) {
            Ok(wanted) => self.merge(wanted),
            Err(error) => {
                let message = format!("{error}; what was handed out before stays");
                let finding = FindingId::InvalidSpec.about("devicePlugin.resources", message);
                stays(self.previous.known().cloned(), finding)
            }
        }
    }

    fn merge(&self, wanted: Partition) -> Settled {
        let empty = Partition::default();
        let old = self.previous.known().unwrap_or(&empty);
        let merged = partition::merge(old, wanted, &self.held.may_include(old), self.offered);
        let deferred = merged.deferred.into_iter().map(|waits| self.waits(waits));
        let left = merged.partition.left_over.iter();
        let left = left.map(|left| FindingId::DeviceLeftOver.about(&left.gpu, &left.reason));
        Settled {
            findings: deferred.chain(left).collect(),
            changing: merged.changing,
            partition: Some(merged.partition),
        }
    }

    fn waits(&self, Deferred { id, reason }: Deferred) -> Finding {
        let reason = if self.held.all().is_some() {
            reason
        } else {
            "its parts change once the kubelet has told which devices are held".to_owned()
        };
        FindingId::DeviceDeferred.about(id, reason)
    }
}

fn stays(partition: Option<Partition>, finding: Finding) -> Settled {
    Settled {
        partition,
        findings: vec![finding],
        ..Settled::default()
    }
}
