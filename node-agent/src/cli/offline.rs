//! Plans without a machine: from a file of facts, as `node-agent facts` prints it. Reads two files and nothing else.

use std::path::Path;

use anyhow::Context;
use host::facts::Facts;
use k8s_openapi::jiff::Timestamp;

use super::{ConfigArgs, PlanOutput, desired, print};
use crate::desired::Desired;
use crate::findings;
use crate::gather::machine;
use crate::host_state::HostState;
use crate::inspect;
use crate::own_nics::OwnNics;
use crate::planner::{self, Memory, Plan, World};
use crate::render;
use crate::roles::{self, KeptRoles};

/// The plan for a machine that is described by its facts: nothing is read but the two files.
pub(super) fn plan_for(
    facts: &Path,
    config: &ConfigArgs,
    output: PlanOutput,
) -> anyhow::Result<()> {
    let desired = desired(&config.config)?;
    let text =
        std::fs::read_to_string(facts).with_context(|| format!("read {}", facts.display()))?;
    let not = || format!("{}: not what `node-agent facts` prints", facts.display());
    // JSON is YAML; both have the names of JSON.
    let value: serde_json::Value = serde_yaml::from_str(&text).with_context(not)?;
    let read: Facts = serde_json::from_value(value).with_context(not)?;
    let state = HostState::try_from(read).with_context(|| facts.display().to_string())?;
    let plan = plan_from(&state, &desired, Timestamp::now());
    match output {
        PlanOutput::Text => print!(
            "{}\n{}",
            render::actions(&plan),
            render::findings(&plan.findings)
        ),
        PlanOutput::Diff => print!("{}", render::diff(&plan, &plan.findings)),
        _ => print(output.into(), &plan)?,
    }
    Ok(())
}

/// The plan for a host that nothing is remembered of.
fn plan_from(state: &HostState, desired: &Desired, now: Timestamp) -> Plan {
    let mut findings = desired.findings.clone();
    let mut machine = machine(&state.facts, &mut findings);
    let own = OwnNics::of(state, &machine, None);
    let kept = KeptRoles::new();
    roles::assign(&mut machine, &desired.config.nics, &kept, &own.nics);
    findings.extend(own.findings(&machine));
    findings.extend(inspect::findings(state, &machine, None));
    let mut plan = planner::plan(&World {
        state,
        machine: &machine,
        desired,
        memory: &Memory::default(),
        now,
    });
    plan.findings.extend(findings);
    findings::sort(&mut plan.findings);
    plan
}
