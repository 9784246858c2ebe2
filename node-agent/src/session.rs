//! What one process remembers from turn to turn: only what it may forget, because a new agent must decide the same.

use crate::apply::Applied;
use crate::decide::Decision;
use crate::observed::Before;

/// The memory of one process.
#[derive(Debug, Default)]
pub struct Session {
    last: Option<Before>,
}

impl Session {
    /// What the agent's own files said last.
    #[must_use]
    pub fn last(&self) -> Option<&Before> {
        self.last.as_ref()
    }

    /// Notes what the files say.
    pub fn read(&mut self, before: &Before) {
        self.last = Some(before.clone());
    }

    /// Notes what was written: the files say so from now on.
    pub fn wrote(&mut self, decision: &Decision, applied: &Applied) {
        let Some(last) = &mut self.last else { return };
        if decision.kept.is_some() {
            last.kept.clone_from(&decision.kept);
        }
        last.cdi.clone_from(&decision.cdi);
        last.node_file = Some(decision.node_file.clone());
        last.memory = applied.memory.clone();
    }
}
