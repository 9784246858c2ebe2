//! Events: one shared recorder. An Event that cannot be written is logged and forgotten; it never fails what it tells
//! about.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

/// Longest note that the API accepts.
const LONGEST: usize = 1024;

/// Writes Events.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// Events of this operator; `instance` is its pod.
    #[must_use]
    pub fn new(client: Client, instance: &str) -> Self {
        let controller = "gpurdma.dev/operator".to_owned();
        let reporter = Reporter {
            controller,
            instance: Some(instance.to_owned()),
        };
        Self {
            recorder: Recorder::new(client, reporter),
        }
    }

    /// Something that goes as it should.
    pub async fn normal(&self, about: &ObjectReference, reason: &str, action: &str, note: String) {
        self.publish(EventType::Normal, about, reason, action, note)
            .await;
    }

    /// Something that a person should see.
    pub async fn warning(&self, about: &ObjectReference, reason: &str, action: &str, note: String) {
        self.publish(EventType::Warning, about, reason, action, note)
            .await;
    }

    async fn publish(
        &self,
        type_: EventType,
        about: &ObjectReference,
        reason: &str,
        action: &str,
        note: String,
    ) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note.chars().take(LONGEST / 4).collect()),
            action: action.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, about).await {
            tracing::warn!(reason, error = %crate::error::chain(&error), "cannot write an Event");
        }
    }
}
