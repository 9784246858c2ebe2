//! Keeps a status within its size. Pure; the agent calls [`GpuRdmaNodeStatus::bounded`] before it writes.

use super::{ActionStatus, Cost, Finding, GpuRdmaNodeStatus, Severity};

/// Largest status, as JSON. Thousands of nodes live in one etcd and in the operator's memory.
pub const MAX_STATUS_BYTES: usize = 16 * 1024;

const MAX_FINDINGS: usize = 40;
const MAX_FREE_ACTIONS: usize = 30;
/// Longest message in bytes, tried one after the other until the status fits. A shorter one would say nothing.
const MESSAGE_LIMITS: [usize; 4] = [512, 256, 160, 96];
const OMITTED: &str = "FINDINGS_OMITTED";

impl GpuRdmaNodeStatus {
    /// The same status within [`MAX_STATUS_BYTES`] and the schema's limits. Messages are cut first, then the last
    /// findings (the least bad) are left out and counted. Costly actions are never left out or changed: the plan's
    /// hash is over them.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let mut omitted = truncate(&mut self.findings, MAX_FINDINGS);
        if let Some(plan) = &mut self.plan {
            drop_free_actions(&mut plan.actions);
        }
        for limit in MESSAGE_LIMITS {
            cut_messages(&mut self, limit);
            if size(&self) <= MAX_STATUS_BYTES - ROOM_FOR_OMITTED {
                break;
            }
        }
        while size(&self) > MAX_STATUS_BYTES - ROOM_FOR_OMITTED && self.findings.pop().is_some() {
            omitted += 1;
        }
        if omitted > 0 {
            self.findings.push(omission(omitted));
        }
        self
    }
}

/// What [`omission`] takes, rounded up.
const ROOM_FOR_OMITTED: usize = 256;

fn omission(count: usize) -> Finding {
    Finding {
        id: OMITTED.to_owned(),
        severity: Severity::Info,
        component: "status".to_owned(),
        message: format!(
            "{count} further findings do not fit here; `node-agent facts` on the node shows all"
        ),
    }
}

fn truncate<T>(items: &mut Vec<T>, max: usize) -> usize {
    let omitted = items.len().saturating_sub(max);
    items.truncate(max);
    omitted
}

/// Free actions run at once, so those beyond the limit show up as soon as the first ones are done.
fn drop_free_actions(actions: &mut Vec<ActionStatus>) {
    let mut free = 0;
    actions.retain(|action| {
        free += usize::from(action.cost == Cost::None);
        action.cost != Cost::None || free <= MAX_FREE_ACTIONS
    });
}

fn cut_messages(status: &mut GpuRdmaNodeStatus, limit: usize) {
    status
        .findings
        .iter_mut()
        .for_each(|finding| cut(&mut finding.message, limit));
    status
        .pairs
        .iter_mut()
        .for_each(|pair| cut(&mut pair.reason, limit));
    status
        .conditions
        .iter_mut()
        .for_each(|condition| cut(&mut condition.message, limit));
    if let Some(plan) = &mut status.plan {
        plan.actions
            .iter_mut()
            .for_each(|action| cut(&mut action.message, limit));
    }
    if let Some(maintenance) = &mut status.maintenance {
        cut(&mut maintenance.message, limit);
    }
}

/// Cuts at a character boundary and says so.
fn cut(text: &mut String, limit: usize) {
    if text.len() <= limit {
        return;
    }
    let keep = text.floor_char_boundary(limit.saturating_sub('…'.len_utf8()));
    text.truncate(keep);
    text.push('…');
}

/// A status that has no JSON form is refused by the API server; its size is of no matter here.
fn size(status: &GpuRdmaNodeStatus) -> usize {
    serde_json::to_vec(status).map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests;
