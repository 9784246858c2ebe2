//! `driver.source: Container`: ready is what is loaded, whatever state the pod is in.

use super::super::{Plan, World};
use super::{node, tell};
use crate::compat::version::Ofed;
use crate::compat::{check, wanted_by_tag};
use crate::findings::FindingId;

pub(super) fn plan(plan: &mut Plan, world: &World<'_>) {
    let Some(container) = &world.desired.config.driver.container else {
        return;
    };
    if let Some(wanted) = wanted_by_tag(&container.version) {
        let verdicts = check(&world.state.compat, &node(world), &wanted);
        tell(plan, "driver.container", &verdicts);
    }
    if let Some(message) = unmet(world, &container.version) {
        plan.find(
            FindingId::DriverContainerNotInEffect,
            "rdma-driver",
            message,
        );
    }
}

/// A tag or a version that has no OFED number compares with nothing, and that is no finding.
fn unmet(world: &World<'_>, tag: &str) -> Option<String> {
    let version = &world.state.facts.ofed_version;
    let Some(loaded) = version.fact.known() else {
        return Some(format!(
            "the driver container {tag} is asked for and no OFED is loaded ({} is not there)",
            version.source
        ));
    };
    let (wanted, running) = (Ofed::parse(tag)?, Ofed::parse(loaded)?);
    (!wanted.same(&running))
        .then(|| format!("the driver container {tag} is asked for and OFED {loaded} is loaded"))
}
