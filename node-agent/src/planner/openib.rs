//! Keys of `/etc/infiniband/openib.conf`. "Written" and "in effect" are two facts: the second needs openibd to restart.

use k8s_openapi::jiff::Timestamp;
use topology::fact::Fact;

use super::{Memory, Plan};
use crate::action::Change;
use crate::desired::Desired;
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::journal::SetKey;
use crate::openib_conf;

const FILE: &str = "/etc/infiniband/openib.conf";

/// One key and where its decision is made.
struct Key<'a> {
    name: &'a str,
    value: &'a str,
    state: &'a HostState,
    memory: &'a Memory,
    now: Timestamp,
}

pub(super) fn keys(
    plan: &mut Plan,
    state: &HostState,
    desired: &Desired,
    memory: &Memory,
    now: Timestamp,
) {
    if desired.openib_conf.is_empty() {
        return;
    }
    let Some(text) = text(plan, state) else {
        return;
    };
    // One odd line stops all keys: say so once.
    if let Err(error) = openib_conf::assignments(&text) {
        return plan.find(FindingId::OpenibConfNotPlain, FILE, error.to_string());
    }
    if !state.facts.openibd.program {
        let message = "there is no /etc/init.d/openibd, so nothing on this node reads the file; inbox drivers are configured in /etc/rdma/modules";
        plan.find(FindingId::OpenibConfWithoutOpenibd, FILE, message);
    }
    for (key, value) in &desired.openib_conf {
        Key {
            name: key,
            value,
            state,
            memory,
            now,
        }
        .decide(plan, &text);
    }
}

/// The text to edit: empty where the file may be created.
fn text(plan: &mut Plan, state: &HostState) -> Option<String> {
    match &state.facts.openib_conf.fact {
        Fact::Known(text) => Some(text.clone()),
        Fact::Absent if state.facts.openibd.directory || state.ofed() => Some(String::new()),
        Fact::Absent => {
            let message = "driver.openibConf is set, but there is neither /etc/infiniband nor an OFED driver on this node; remove the field, or install the driver that reads it";
            plan.find(FindingId::OpenibConfAbsent, FILE, message);
            None
        }
        Fact::Unreadable(why) => {
            plan.find(FindingId::HostUnreadable, FILE, why);
            None
        }
    }
}

impl Key<'_> {
    fn decide(&self, plan: &mut Plan, text: &str) {
        // Lines were checked by the caller; an error here is the same one.
        let Ok(found) = openib_conf::effective(text, self.name) else {
            return;
        };
        let (current, overridden) = match found {
            Some((last, overridden)) => (Some(last.value), overridden),
            None => (None, Vec::new()),
        };
        self.duplicates(plan, &overridden);
        if current == Some(Some(self.value.to_owned())) {
            self.in_effect(plan);
        } else if self
            .ours()
            .is_some_and(|set| set.asserted && set.after == self.value)
        {
            self.contested(plan, &shown(current.as_ref()));
        } else {
            let precondition = format!("{FILE} has {} = {}", self.name, shown(current.as_ref()));
            plan.act(self.change(), precondition, self.memory, self.now);
        }
    }

    fn change(&self) -> Change {
        Change::SetOpenibConf {
            key: self.name.to_owned(),
            value: Some(self.value.to_owned()),
        }
    }

    fn ours(&self) -> Option<&SetKey> {
        self.memory.journal.openib_conf.get(self.name)
    }

    fn duplicates(&self, plan: &mut Plan, overridden: &[usize]) {
        if overridden.is_empty() {
            return;
        }
        let lines: Vec<String> = overridden.iter().map(ToString::to_string).collect();
        let message = format!(
            "{} is assigned more than once; the last assignment counts, line {} has no effect: remove it",
            self.name,
            lines.join(", ")
        );
        plan.find(FindingId::OpenibConfDuplicate, self.name, message);
    }

    /// Written in this boot by us, and openibd has not been started since.
    fn in_effect(&self, plan: &mut Plan) {
        let state = self.state;
        let Some(set) = self.ours().filter(|set| set.boot_id == state.boot_id) else {
            return;
        };
        let openibd = &state.facts.openibd;
        let restarted = openibd.invocation.known().is_some()
            && openibd.invocation.known() != set.openibd.as_ref();
        if set.after == self.value && !restarted && openibd.program {
            let message = format!(
                "{}={} is written but not in effect: openibd reads the file when it starts. Restart openibd (it reloads the RDMA stack) or reboot",
                self.name, self.value
            );
            plan.find(FindingId::OpenibConfNotInEffect, self.name, message);
        }
    }

    fn contested(&self, plan: &mut Plan, current: &str) {
        let (key, value) = (self.name, self.value);
        let message = format!(
            "{key}={value} was written by this agent and is now {current}: someone else owns the file. Nothing is written again until driver.openibConf changes or the GpuRdmaNode is annotated with {}",
            crds::names::RESET_ATTEMPTS
        );
        plan.find(FindingId::ForeignOwner, key, message);
    }
}

fn shown(current: Option<&Option<String>>) -> String {
    match current {
        None => "(not set)".to_owned(),
        Some(None) => "(computed by shell)".to_owned(),
        Some(Some(value)) => value.clone(),
    }
}
