//! Keeps one resource registered with the kubelet: serve, register, attend, and again from the start when the kubelet
//! restarted, when the socket vanished, or when the kubelet ended its stream and opened no other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use topology::fact::Fact;

use crate::accept::chain;
use crate::endpoint::{Endpoint, EndpointError};
use crate::identity::{FileId, identify};
use crate::kubelet;
use crate::owners::Owners;
use crate::proto::KUBELET_SOCKET;
use crate::proto::device_plugin_server::DevicePluginServer;
use crate::resource::Snapshot;
use crate::service::Service;
use crate::timing::{Backoff, Timing};

/// What all sessions have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    /// The kubelet's device-plugins directory.
    pub(crate) dir: PathBuf,
    /// The host's `/dev`, where it is mounted.
    pub(crate) dev: Option<PathBuf>,
    /// Who the uverbs devices belong to.
    pub(crate) owners: Arc<Owners>,
    /// Waits.
    pub(crate) timing: Timing,
    /// What is true now.
    pub(crate) snapshots: watch::Receiver<Arc<Snapshot>>,
    /// Wakes at changes in `dir`.
    pub(crate) pulses: watch::Receiver<u64>,
}

/// Why a registration ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Stopped,
    KubeletRestarted,
    SocketVanished,
    StreamLost { had_one: bool },
    Failed(String),
}

/// One resource.
pub(crate) struct Session {
    name: String,
    shared: Shared,
    stop: watch::Receiver<bool>,
    told: String,
}

impl Session {
    pub(crate) fn new(name: String, shared: Shared, stop: watch::Receiver<bool>) -> Self {
        Self {
            name,
            shared,
            stop,
            told: String::new(),
        }
    }

    /// Runs until it is stopped.
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::new(&self.shared.timing);
        while let Some(kubelet) = self.kubelet().await {
            let end = self.round(kubelet).await;
            self.tell(&end);
            match end {
                End::Stopped => return,
                End::KubeletRestarted | End::SocketVanished | End::StreamLost { had_one: true } => {
                    backoff.reset();
                }
                End::StreamLost { had_one: false } | End::Failed(_) => {
                    self.pause(backoff.pause(), kubelet).await;
                }
            }
        }
    }

    /// The kubelet's socket, as soon as there is one; `None` when stopped first. Nothing is served before: a kubelet
    /// that starts deletes every other socket, then makes its own.
    async fn kubelet(&mut self) -> Option<FileId> {
        loop {
            self.shared.pulses.mark_unchanged();
            match identify(&self.kubelet_socket()) {
                _ if *self.stop.borrow() => return None,
                Fact::Known(id) => return Some(id),
                Fact::Absent => self.tell(&End::Failed("there is no kubelet.sock yet".to_owned())),
                Fact::Unreadable(why) => self.tell(&End::Failed(why)),
            }
            tokio::select! {
                changed = self.shared.pulses.changed() => changed.ok()?,
                changed = self.stop.changed() => changed.ok()?,
            }
        }
    }

    /// One registration from its socket to its end.
    async fn round(&mut self, kubelet: FileId) -> End {
        let mut serving = match Serving::start(&self.name, &self.shared) {
            Ok(serving) => serving,
            Err(error) => return End::Failed(chain(&error)),
        };
        let end = match self.register(&serving).await {
            Ok(()) => self.attend(&mut serving, kubelet).await,
            Err(end) => end,
        };
        serving.close(self.shared.timing.close_limit).await;
        end
    }

    async fn register(&mut self, serving: &Serving) -> Result<(), End> {
        let socket = self.kubelet_socket();
        let limit = self.shared.timing.register_limit;
        let call = kubelet::register(&socket, serving.endpoint.name(), &self.name, limit);
        tokio::select! {
            result = call => result.map_err(|error| End::Failed(error.to_string()))?,
            _ = self.stop.wait_for(|stop| *stop) => return Err(End::Stopped),
        }
        tracing::info!(
            resource = self.name,
            endpoint = serving.endpoint.name(),
            "registered with the kubelet"
        );
        self.told.clear();
        Ok(())
    }

    /// Waits for a reason to register again.
    async fn attend(&mut self, serving: &mut Serving, kubelet: FileId) -> End {
        let mut streams = serving.streams.subscribe();
        let mut patience = StreamPatience::new(self.shared.timing.stream_grace);
        loop {
            self.shared.pulses.mark_unchanged();
            let now = identify(&self.kubelet_socket());
            let open = *streams.borrow_and_update();
            let deadline = patience.deadline(open, now == Fact::Absent, Instant::now());
            if let Some(end) = self.verdict(serving, &now, kubelet, &patience) {
                return end;
            }
            tokio::select! {
                changed = self.shared.pulses.changed() => if changed.is_err() { return End::Stopped },
                _ = streams.changed() => {}
                changed = self.stop.changed() => if changed.is_err() { return End::Stopped },
                () = sleep_until(deadline) => {}
                _ = &mut serving.server => return End::Failed("the server ended".to_owned()),
            }
        }
    }

    fn verdict(
        &self,
        serving: &Serving,
        now: &Fact<FileId>,
        kubelet: FileId,
        patience: &StreamPatience,
    ) -> Option<End> {
        if *self.stop.borrow() {
            return Some(End::Stopped);
        }
        if now.known().is_some_and(|id| *id != kubelet) {
            return Some(End::KubeletRestarted);
        }
        if serving.endpoint.vanished() {
            return Some(End::SocketVanished);
        }
        patience.is_over(Instant::now()).then_some(End::StreamLost {
            had_one: patience.had_one,
        })
    }

    /// Waits, but no longer than until another kubelet is there.
    async fn pause(&mut self, pause: Duration, tried: FileId) {
        let over = tokio::time::sleep(pause);
        tokio::pin!(over);
        loop {
            self.shared.pulses.mark_unchanged();
            let another = identify(&self.kubelet_socket())
                .known()
                .is_some_and(|id| *id != tried);
            if another || *self.stop.borrow() {
                return;
            }
            tokio::select! {
                () = &mut over => return,
                changed = self.shared.pulses.changed() => if changed.is_err() { return },
                _ = self.stop.changed() => return,
            }
        }
    }

    /// Logs why a registration ended; the same failure once.
    fn tell(&mut self, end: &End) {
        let resource = &self.name;
        match end {
            End::Failed(why) if *why == self.told => {}
            End::Failed(why) => {
                tracing::warn!(resource, "not registered, trying again: {why}");
                self.told.clone_from(why);
            }
            End::Stopped => tracing::info!(resource, "no longer served"),
            End::KubeletRestarted => {
                tracing::info!(resource, "the kubelet restarted; registering again");
            }
            End::SocketVanished => {
                tracing::info!(resource, "the own socket vanished; registering again");
            }
            End::StreamLost { .. } => tracing::warn!(
                resource,
                "the kubelet has no stream open; registering again"
            ),
        }
    }

    fn kubelet_socket(&self) -> PathBuf {
        self.shared.dir.join(KUBELET_SOCKET)
    }
}

/// How long the kubelet has been without a stream.
struct StreamPatience {
    grace: Duration,
    until: Option<Instant>,
    had_one: bool,
}

impl StreamPatience {
    fn new(grace: Duration) -> Self {
        Self {
            grace,
            until: None,
            had_one: false,
        }
    }

    /// When patience ends. A kubelet that is not running is not late.
    fn deadline(&mut self, open: usize, stopped: bool, now: Instant) -> Option<Instant> {
        self.had_one |= open > 0;
        self.until = (open == 0 && !stopped).then(|| self.until.unwrap_or(now + self.grace));
        self.until
    }

    fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A server on its socket.
struct Serving {
    endpoint: Endpoint,
    streams: watch::Sender<usize>,
    closing: watch::Sender<bool>,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl Serving {
    fn start(name: &str, shared: &Shared) -> Result<Self, EndpointError> {
        let (endpoint, listener) = Endpoint::bind(&shared.dir, name)?;
        let (streams, _) = watch::channel(0);
        let (closing, mut close) = watch::channel(false);
        let service = Service {
            name: name.to_owned(),
            snapshots: shared.snapshots.clone(),
            streams: streams.clone(),
            closing: close.clone(),
            dev: shared.dev.clone(),
            owners: shared.owners.clone(),
        };
        let closed = async move { close.wait_for(|closing| *closing).map(|_| ()).await };
        let incoming = UnixListenerStream::new(listener);
        let service = DevicePluginServer::new(service);
        let server = Server::builder().serve_with_incoming_shutdown(service, incoming, closed);
        let server = tokio::spawn(server);
        Ok(Self {
            endpoint,
            streams,
            closing,
            server,
        })
    }

    /// Ends the streams and then the server, so that the kubelet is done with this socket before it hears of another.
    async fn close(mut self, limit: Duration) {
        self.closing.send_replace(true);
        if !self.server.is_finished()
            && tokio::time::timeout(limit, &mut self.server).await.is_err()
        {
            tracing::warn!(
                endpoint = self.endpoint.name(),
                "connections outlived their server"
            );
            self.server.abort();
        }
    }
}

#[cfg(test)]
mod tests;
