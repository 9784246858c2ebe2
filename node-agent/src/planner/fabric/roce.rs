//! `RoCE` mode and type of service of RDMA-CM connections, and the out-of-tree driver's traffic class.

use crds::fabric::{Roce, RoceVersion};
use host::facts::network::PortSettings;
use topology::fact::Fact;

use super::{Plan, Site, World};
use crate::action::{FabricChange, RdmaPort};
use crate::findings::FindingId;

/// Bits of the type of service below the DSCP.
const ECN_BITS: u8 = 2;

pub(super) fn plan(plan: &mut Plan, world: &World<'_>, site: &Site<'_>) {
    let Some(roce) = &world.desired.config.fabric.roce else {
        return;
    };
    let (Some((netdev, _)), Some(device)) = (site.netdevs.first(), site.nic.rdma.as_ref()) else {
        return;
    };
    let settings = world.state.facts.network.ports.get(device);
    for (number, settings) in settings.into_iter().flatten() {
        let port = RdmaPort {
            device: device.clone(),
            port: *number,
            netdev: netdev.clone(),
        };
        mode(plan, world, roce, &port, settings);
        tos(plan, world, roce, &port, settings);
        traffic_class(plan, world, roce, &port, settings);
    }
}

/// DSCP that packets have, by either field; `None` where neither is set or they contradict each other.
pub(super) fn dscp(roce: &Roce) -> Option<u8> {
    let by_class = roce.traffic_class.map(|class| class >> ECN_BITS);
    let found = match (roce.dscp, by_class) {
        (Some(dscp), Some(class)) if dscp != class => None,
        (dscp, class) => dscp.or(class),
    };
    found.filter(|dscp| *dscp < 64)
}

fn wanted_tos(roce: &Roce) -> Option<u8> {
    let by_dscp = dscp(roce)? << ECN_BITS;
    roce.traffic_class.or(Some(by_dscp))
}

/// RDMA-CM shows nothing before a directory is made, so what holds until then is not known: it is set once.
fn mode(plan: &mut Plan, world: &World<'_>, roce: &Roce, port: &RdmaPort, settings: &PortSettings) {
    let Some(version) = roce.version else { return };
    let wanted = version == RoceVersion::V2;
    let before = match &settings.roce_mode.fact {
        Fact::Known(mode) if mode == "RoCE v2" => Some(true),
        Fact::Known(_) => Some(false),
        Fact::Absent if settings.configfs => None,
        other => return no_configfs(plan, port, other.clone().map(drop)),
    };
    let change = |v2| FabricChange::RoceMode {
        port: port.clone(),
        v2,
    };
    if before == Some(wanted) {
        return plan.as_asked(change(wanted));
    }
    let seen = match before {
        Some(v2) => format!("RDMA-CM of {port} uses {}", crate::action::roce_mode(v2)),
        None => format!("nobody has set the mode of RDMA-CM of {port} where it can be seen"),
    };
    // The kernel's own choice is version 2 (`CMA_PREFERRED_ROCE_GID_TYPE`).
    plan.fabric(world, change(wanted), change(before.unwrap_or(true)), seen);
}

fn no_configfs(plan: &mut Plan, port: &RdmaPort, seen: Fact<()>) {
    let message = match seen {
        Fact::Unreadable(why) => why,
        _ => "there is no /sys/kernel/config/rdma_cm: load rdma_cm and mount configfs, then RDMA-CM's mode and type of service can be set".to_owned(),
    };
    plan.find(FindingId::QosUnsupported, &port.device, message);
}

fn tos(plan: &mut Plan, world: &World<'_>, roce: &Roce, port: &RdmaPort, settings: &PortSettings) {
    let Some(wanted) = wanted_tos(roce) else {
        return;
    };
    let before = match &settings.tos.fact {
        Fact::Known(tos) => Some(*tos),
        Fact::Absent if settings.configfs => None,
        other => return no_configfs(plan, port, other.clone().map(drop)),
    };
    let change = |tos| FabricChange::Tos {
        port: port.clone(),
        tos,
    };
    if before == Some(wanted) {
        return plan.as_asked(change(wanted));
    }
    let seen = match before {
        Some(tos) => format!("RDMA-CM of {port} has type of service {tos}"),
        None => {
            format!("nobody has set the type of service of RDMA-CM of {port} where it can be seen")
        }
    };
    plan.fabric(world, change(wanted), change(before.unwrap_or(0)), seen);
}

fn traffic_class(
    plan: &mut Plan,
    world: &World<'_>,
    roce: &Roce,
    port: &RdmaPort,
    settings: &PortSettings,
) {
    // One that the DSCP contradicts is set nowhere.
    let Some(wanted) = roce.traffic_class.filter(|_| dscp(roce).is_some()) else {
        return;
    };
    let change = |class| FabricChange::TrafficClass {
        port: port.clone(),
        class,
    };
    let before = match &settings.traffic_class.fact {
        Fact::Known(class) if *class == wanted => return plan.as_asked(change(wanted)),
        Fact::Known(class) => Some(*class),
        Fact::Absent if settings.has_traffic_class => None,
        Fact::Absent => {
            let message = format!(
                "the driver has no {}: in-tree drivers do not. RDMA-CM's type of service is set; for other connections set NCCL_IB_TC={wanted} and UCX_IB_TRAFFIC_CLASS={wanted} in the pods",
                settings.traffic_class.source
            );
            return plan.find(FindingId::QosUnsupported, &port.device, message);
        }
        Fact::Unreadable(why) => {
            return plan.find(FindingId::HostUnreadable, &port.device, why);
        }
    };
    let seen = match before {
        Some(class) => format!("{port} has traffic class {class}"),
        None => format!("{port} has no traffic class"),
    };
    plan.fabric(world, change(wanted), change(before.unwrap_or(0)), seen);
}
