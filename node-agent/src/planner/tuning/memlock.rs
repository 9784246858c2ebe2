//! Locked memory of containers: a finding with the remedy for each runtime. Kubernetes has no field for the limit. Pure.

use host::facts::tuning::memlock::{Limit, Runtime};
use topology::fact::Fact;

use super::super::{Plan, World};
use super::tuning;
use crate::findings::FindingId;

pub(super) fn find(plan: &mut Plan, world: &World<'_>) {
    if world.machine.nics.is_empty() {
        return;
    }
    for (unit, runtime) in &tuning(world.state).runtimes {
        match &runtime.limit {
            Fact::Known(Limit::Bytes(bytes)) => limited(plan, unit, runtime, *bytes),
            Fact::Known(Limit::Unlimited) | Fact::Absent => {}
            Fact::Unreadable(why) => plan.find(FindingId::HostUnreadable, unit, why),
        }
    }
}

fn limited(plan: &mut Plan, unit: &str, runtime: &Runtime, bytes: u64) {
    let written = runtime
        .unit_files
        .iter()
        .any(|line| line.value == "infinity");
    let remedy = if written {
        format!("LimitMEMLOCK=infinity is written and not in effect: restart {unit}")
    } else {
        remedy(unit)
    };
    let message = format!(
        "containers may lock {} KiB of memory, which RDMA registration exceeds (ENOMEM). {remedy}; then start the pods anew. The capability IPC_LOCK helps root only",
        bytes / 1024
    );
    plan.find(FindingId::RuntimeMemlockLimited, unit, message);
}

fn remedy(unit: &str) -> String {
    let drop_in = format!(
        "Write LimitMEMLOCK=infinity below [Service] in a drop-in (systemctl edit {unit}) and restart {unit}"
    );
    match unit {
        "crio" => format!(
            "{drop_in}, or set default_ulimits = [\"memlock=-1:-1\"] in /etc/crio/crio.conf.d"
        ),
        "docker" => format!("{drop_in}, or set default-ulimits.memlock in /etc/docker/daemon.json"),
        _ => drop_in,
    }
}
