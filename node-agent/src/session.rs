//! What one process remembers from turn to turn: only what it may forget, because a new agent must decide the same.

use std::sync::Arc;

use host::facts::Facts;
use k8s_openapi::jiff::Timestamp;

use crate::apply::Applied;
use crate::asked::Asked;
use crate::decide::Decision;
use crate::evidence::{Evidence, SocketId};
use crate::gather::HostReader;
use crate::observed::{Before, Observed};
use crate::podresources::Connection;

/// The memory of one process.
#[derive(Debug, Default)]
pub struct Session {
    last: Option<Before>,
    facts: Option<Arc<Facts>>,
    kubelet: Option<Evidence>,
    /// The kubelet's socket, and when it was seen first.
    socket: Option<(SocketId, Timestamp)>,
    /// What must be read of the host for what is asked.
    pub asked: Asked,
    /// The connection with the kubelet.
    pub connection: Connection,
    /// Reads the host.
    pub reader: HostReader,
}

impl Session {
    /// What the agent's own files said last.
    #[must_use]
    pub fn last(&self) -> Option<&Before> {
        self.last.as_ref()
    }

    /// The facts of the last turn.
    #[must_use]
    pub fn facts(&self) -> Option<Arc<Facts>> {
        self.facts.clone()
    }

    /// What the kubelet said in the last turn.
    #[must_use]
    pub fn kubelet(&self) -> Option<&Evidence> {
        self.kubelet.as_ref()
    }

    /// The kubelet's socket, and when it was seen first.
    #[must_use]
    pub fn socket(&self) -> Option<&(SocketId, Timestamp)> {
        self.socket.as_ref()
    }

    /// Notes what was seen at `now`.
    pub fn saw(&mut self, observed: &Observed, now: Timestamp) {
        self.last = Some(observed.before.clone());
        self.facts = Some(Arc::new(observed.state.facts.clone()));
        self.kubelet = Some(observed.kubelet.clone());
        let seen = observed.kubelet.socket();
        let same = |(id, _): &(SocketId, Timestamp)| Some(id) == seen;
        if !self.socket.as_ref().is_some_and(same) {
            self.socket = seen.map(|id| (id.clone(), now));
        }
    }

    /// Notes what was written: the files say so from now on.
    pub fn wrote(&mut self, decision: &Decision, applied: &Applied) {
        let Some(last) = &mut self.last else { return };
        if decision.kept.is_some() {
            last.kept.clone_from(&decision.kept);
        }
        last.cdi.clone_from(&decision.cdi);
        last.node_file = Some(decision.for_plugin());
        last.memory = applied.memory.clone();
    }
}
