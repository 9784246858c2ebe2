//! Maximum read request of compute NICs. Pure. A virtual function has no such setting of its own (SR-IOV 1.1, 3.5.4).

use std::collections::BTreeSet;

use host::machine::express::size_field;
use topology::fact::Fact;
use topology::machine::NicRole;
use topology::pci::PciAddress;

use super::super::{Plan, World};
use super::{locked_down, tuning};
use crate::action::{Change, TuningChange};
use crate::findings::FindingId;

pub(super) fn set(plan: &mut Plan, world: &World<'_>, bytes: u32) {
    let field = "tuning.maxReadRequestBytes";
    if size_field(bytes).is_none() {
        let message = format!("{bytes}: write 128, 256, 512, 1024, 2048 or 4096");
        return plan.find(FindingId::InvalidSpec, field, message);
    }
    let compute = world
        .machine
        .nics
        .iter()
        .filter(|nic| nic.role == NicRole::Compute && nic.physfn.is_none());
    let functions: BTreeSet<_> = compute.filter_map(|nic| nic.pci).collect();
    for function in functions {
        let component = function.to_string();
        match tuning(world.state)
            .pcie
            .get(&function)
            .map(|f| &f.max_read_request)
        {
            Some(Fact::Known(now)) if *now == bytes => {
                let met = TuningChange::MaxReadRequest { function, bytes };
                plan.met.insert(Change::Tuning(met));
            }
            Some(Fact::Known(now)) => change(plan, world, function, *now, bytes),
            Some(Fact::Absent) => {
                plan.find(
                    FindingId::PcieNotChanged,
                    component,
                    "the function is not a PCI Express one",
                );
            }
            Some(Fact::Unreadable(why)) => plan.find(FindingId::HostUnreadable, component, why),
            None => plan.find(
                FindingId::HostUnreadable,
                component,
                "its configuration space was not read",
            ),
        }
    }
}

fn change(plan: &mut Plan, world: &World<'_>, function: PciAddress, now: u32, bytes: u32) {
    if let Some(why) = locked_down(world.state) {
        return plan.find(FindingId::PcieNotChanged, function.to_string(), why);
    }
    let to = |bytes| Change::Tuning(TuningChange::MaxReadRequest { function, bytes });
    plan.ensure(world, to(bytes), to(now), format!("{function} has {now}"));
}
