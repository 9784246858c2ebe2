//! The agent's loop: watches its own `GpuRdmaNode`, runs a turn on every change of it or of the RDMA devices and every ten
//! seconds, and publishes the status by server-side apply, only when it differs. What fails is logged here, once, and tried
//! again at the next turn. Where nothing is left to do, glances ([`crate::watch`]) stand for the turns of a minute.

use std::time::Duration;

use crds::names::AGENT_MANAGER;
use crds::{GpuRdmaNode, GpuRdmaNodeStatus};
use futures::{Stream, StreamExt};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::cycle::{Turn, cycle};
use crate::desired::Desired;
use crate::gather::{chain, kubelet_changed};
use crate::session::Session;
use crate::settings::Settings;
use crate::watch::{self, Devices, HostSettings};

/// Time between two turns, or between two glances at the host's settings and the kubelet where nothing is left to do.
const PERIOD: Duration = Duration::from_secs(10);

/// Time between two turns while nothing is left to do and nothing is seen to change: what no glance shows is found then.
const REST: Duration = Duration::from_mins(2);

/// Time until the next turn where devices change hands: longer than [`crate::handover::UNDER_WAY`].
const SOON: Duration = Duration::from_secs(4);

/// Time until the next turn while granted actions run: a grant that is taken back comes in between.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Why the loop ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The process cannot be told to stop.
    #[error("listen for SIGTERM")]
    Signal(#[source] std::io::Error),
    /// The devices cannot be watched.
    #[error("start a thread that watches the RDMA devices")]
    Watch(#[source] std::io::Error),
    /// The watch ended, which it never does by itself.
    #[error("the watch of GpuRdmaNode {0} ended")]
    WatchEnded(String),
}

/// One agent.
struct Agent {
    settings: Settings,
    session: Session,
    devices: Devices,
    host: HostSettings,
    /// Until when no turn is needed, unless something changes.
    rests_until: Option<Instant>,
    name: String,
    api: Api<GpuRdmaNode>,
    /// The object as the API server has it; `None` until there is one.
    node: Option<GpuRdmaNode>,
    /// Whether the first list of a watch has shown the object.
    listed: bool,
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(client: Client, settings: Settings, name: String) -> Result<(), RunError> {
    let api: Api<GpuRdmaNode> = Api::all(client);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(api.clone(), config).default_backoff().boxed();
    let devices = Devices::watch(settings.root.clone(), watch::PERIOD).map_err(RunError::Watch)?;
    let agent = Agent {
        settings,
        session: Session::default(),
        devices,
        host: HostSettings::default(),
        rests_until: None,
        name,
        api,
        node: None,
        listed: false,
    };
    Box::pin(agent.run(events)).await
}

impl Agent {
    async fn run(
        mut self,
        mut events: impl Stream<Item = Result<Event<GpuRdmaNode>, watcher::Error>> + Unpin,
    ) -> Result<(), RunError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(RunError::Signal)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::Signal)?;
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                _ = period.tick() => if self.due().await { self.turn(&mut period).await },
                () = self.devices.changed() => {
                    tracing::info!("RDMA devices came, went or came back, or a port has another state");
                    self.turn(&mut period).await;
                }
                event = events.next() => match event {
                    None => return Err(RunError::WatchEnded(self.name)),
                    Some(Err(error)) => tracing::warn!(error = chain(&error), "watch GpuRdmaNode"),
                    Some(Ok(event)) => if self.observe(event) { self.turn(&mut period).await },
                },
            }
        }
    }

    /// Takes an event in; says whether it changes what is asked. Our own status writes do not.
    fn observe(&mut self, event: Event<GpuRdmaNode>) -> bool {
        match event {
            Event::Init => self.listed = false,
            Event::InitApply(node) | Event::Apply(node) => {
                self.listed = true;
                let asked = |node: &GpuRdmaNode| Desired::of_node(node);
                let changed = self.node.as_ref().map(asked) != Some(asked(&node));
                self.node = Some(node);
                return changed;
            }
            Event::InitDone if !self.listed => self.node = None,
            Event::InitDone => {}
            // Absence is not evidence: what is advertised stays as it is, and nothing new is done.
            Event::Delete(_) => self.node = None,
        }
        false
    }

    /// Whether a turn could end otherwise than the last one did.
    async fn due(&mut self) -> bool {
        if self.rests_until.is_none_or(|until| until <= Instant::now()) {
            return true;
        }
        let facts = self.session.facts().unwrap_or_default();
        self.devices.hang()
            || self.host.changed(&self.settings, facts).await
            || kubelet_changed(&self.settings, &mut self.session, Timestamp::now()).await
    }

    async fn turn(&mut self, period: &mut Interval) {
        let Some(node) = &self.node else {
            tracing::debug!(name = self.name, "no GpuRdmaNode yet");
            return;
        };
        let desired = Desired::of_node(node);
        self.rests_until = None;
        // What changes from here on is another turn's.
        let facts = self.session.facts().unwrap_or_default();
        self.host.changed(&self.settings, facts).await;
        let turn = cycle(
            &self.settings,
            &mut self.session,
            &desired,
            node.status.as_ref(),
            Timestamp::now(),
        )
        .await;
        self.devices
            .expect(self.session.facts().unwrap_or_default());
        match turn {
            Ok(Turn {
                status,
                applied,
                again,
                more,
                at_rest,
            }) => {
                if more {
                    period.reset_after(AT_ONCE);
                } else if again {
                    period.reset_after(SOON);
                }
                for path in &applied.written {
                    tracing::info!(path, "written");
                }
                let published = self.publish(status).await;
                self.rests_until = (at_rest && published).then(|| Instant::now() + REST);
            }
            Err(error) => tracing::error!(error = chain(&error), "turn"),
        }
    }

    /// Server-side apply without force: another manager's field is an error that a person should see. Says whether the API
    /// server has the status.
    async fn publish(&mut self, status: GpuRdmaNodeStatus) -> bool {
        let Some(node) = &self.node else { return false };
        if node.status.as_ref() == Some(&status) {
            return true;
        }
        let patch = serde_json::json!({
            "apiVersion": GpuRdmaNode::api_version(&()),
            "kind": GpuRdmaNode::kind(&()),
            "metadata": { "name": self.name, "uid": node.metadata.uid },
            "status": status,
        });
        let parameters = PatchParams::apply(AGENT_MANAGER);
        match self
            .api
            .patch_status(&self.name, &parameters, &Patch::Apply(patch))
            .await
        {
            Ok(updated) => {
                self.node = Some(updated);
                true
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "publish status");
                false
            }
        }
    }
}
