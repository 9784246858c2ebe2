//! Plans and findings as text for a person. Pure; the command line prints it, the planner's goldens hold it.

use std::fmt::Write as _;

use crds::GpuRdmaNodeStatus;
use crds::node::{Cost, Finding};

use crate::action::Explain;
use crate::apply::Applied;
use crate::planner::Plan;

/// A plan with the state of the node around it.
#[must_use]
pub fn text(plan: &Plan, status: &GpuRdmaNodeStatus) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "Phase    {:?}", status.phase);
    for condition in &status.conditions {
        let (kind, state, reason) = (&condition.type_, &condition.status, &condition.reason);
        let _ = writeln!(out, "{kind:14} {state:7} {reason}: {}", condition.message);
    }
    let _ = writeln!(out, "\nPairs");
    for pair in &status.pairs {
        let admitted = if pair.admitted { "admitted" } else { "refused" };
        let nics = pair.nics.join("+");
        let _ = writeln!(
            out,
            "  {:6} {nics:16} {:8} {admitted} {}",
            pair.gpu, pair.distance, pair.reason
        );
    }
    if status.pairs.is_empty() {
        let _ = writeln!(out, "  none");
    }
    let _ = write!(out, "\n{}\n{}", actions(plan), findings(&status.findings));
    out
}

/// The actions of a plan.
#[must_use]
pub fn actions(plan: &Plan) -> String {
    if plan.actions.is_empty() {
        return "Actions: none\n".to_owned();
    }
    let mut out = "Actions\n".to_owned();
    for (index, action) in plan.actions.iter().enumerate() {
        for (number, line) in action.to_string().lines().enumerate() {
            let head = if number == 0 {
                format!("{}.", index + 1)
            } else {
                String::new()
            };
            let _ = writeln!(out, "{head:3} {line}");
        }
    }
    out
}

/// A plan as a change: what is there, and what would be. Findings stand below as comments.
#[must_use]
pub fn diff(plan: &Plan, findings: &[Finding]) -> String {
    let mut out = String::new();
    for action in &plan.actions {
        let change = &action.change;
        let cost = match change.cost() {
            Cost::None => "runs at once",
            Cost::Traffic => "needs a grant: traffic",
            Cost::Reboot => "needs a grant: reboot",
        };
        let _ = writeln!(out, "@@ {} {} @@ {cost}", change.kind(), change.target());
        let _ = writeln!(out, "- {}", action.precondition);
        let _ = writeln!(out, "+ {}", change.effect());
    }
    for finding in findings {
        let Finding {
            id,
            severity,
            component,
            message,
        } = finding;
        let _ = writeln!(out, "# {severity:?} {id} {component}: {message}");
    }
    out
}

/// Findings, one paragraph each.
#[must_use]
pub fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "Findings: none\n".to_owned();
    }
    let mut out = "Findings\n".to_owned();
    for Finding {
        id,
        severity,
        component,
        message,
    } in findings
    {
        let _ = writeln!(out, "  {severity:?} {id} ({component})\n      {message}");
    }
    out
}

/// What was done.
#[must_use]
pub fn applied(applied: &Applied) -> String {
    let mut out = String::new();
    for path in &applied.written {
        let _ = writeln!(out, "written: {path}");
    }
    for (name, error) in &applied.actions {
        let _ = match error {
            None => writeln!(out, "done: {name}"),
            Some(error) => writeln!(out, "failed: {name}: {error}"),
        };
    }
    if out.is_empty() {
        out.push_str("nothing to do\n");
    }
    out
}
