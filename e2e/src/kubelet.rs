//! The kubelet's side of the device plugin API, with the moment of everything that happens: the bench measures any device
//! plugin with it.
//!
//! As a kubelet does it: a start deletes every socket of the directory and then makes `kubelet.sock`; Register dials the
//! plugin back and asks for its options before it answers, then opens the stream of lists.

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use device_plugin::proto::device_plugin_client::DevicePluginClient;
use device_plugin::proto::registration_server::{Registration, RegistrationServer};
use device_plugin::proto::{Device, DevicePluginOptions, Empty, KUBELET_SOCKET, RegisterRequest};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

/// A client of a plugin.
pub type Api = DevicePluginClient<Channel>;

/// A running kubelet; dropped, it dies at once, and the file of its socket stays as after a SIGKILL.
pub struct Kubelet {
    started: Instant,
    registrations: mpsc::UnboundedReceiver<Registered>,
    /// What nobody asked for; hung up on, a plugin would register it again and again.
    others: Vec<Registered>,
    server: JoinHandle<()>,
}

/// A plugin that registered one resource; dropped, its connection is closed.
pub struct Registered {
    /// When the call came.
    pub at: Instant,
    /// When the plugin was dialled.
    pub dialled: Instant,
    /// What it said.
    pub request: RegisterRequest,
    /// What it answered.
    pub options: DevicePluginOptions,
    /// For further calls.
    pub api: Api,
    lists: watch::Receiver<Option<List>>,
    watcher: AbortHandle,
}

/// A list of devices.
#[derive(Clone)]
pub struct List {
    /// When it came.
    pub at: Instant,
    /// The devices.
    pub devices: Arc<Vec<Device>>,
}

impl Kubelet {
    /// Starts as a kubelet does, and remembers the moment before its socket was made.
    pub fn start(dir: &Path) -> Result<Self> {
        delete_sockets(dir)?;
        let socket = dir.join(KUBELET_SOCKET);
        let (registered, registrations) = mpsc::unbounded_channel();
        let registrar = Registrar {
            dir: dir.to_owned(),
            registered,
        };
        let service = RegistrationServer::new(registrar);
        let started = Instant::now();
        let listener =
            UnixListener::bind(&socket).with_context(|| format!("bind {}", socket.display()))?;
        let incoming = UnixListenerStream::new(listener);
        let server = tokio::spawn(async move {
            let server = Server::builder().serve_with_incoming(service, incoming);
            if let Err(error) = server.await {
                eprintln!("the kubelet's server ended: {error}");
            }
        });
        Ok(Self {
            started,
            registrations,
            others: Vec::new(),
            server,
        })
    }

    /// The moment before its socket was made.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The next plugin that registers the resource, or any where none is given.
    pub async fn registered(
        &mut self,
        resource: Option<&str>,
        limit: Duration,
    ) -> Result<Registered> {
        let wanted = |name: &str| resource.is_none_or(|resource| resource == name);
        let next = async {
            loop {
                match self.registrations.recv().await {
                    Some(plugin) if wanted(&plugin.request.resource_name) => return Ok(plugin),
                    Some(other) => self.others.push(other),
                    None => bail!("the kubelet's server ended"),
                }
            }
        };
        let late = || format!("no plugin registered within {} s", limit.as_secs());
        tokio::time::timeout(limit, next).await.with_context(late)?
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Registered {
    /// The first list.
    pub async fn list(&mut self, limit: Duration) -> Result<List> {
        let came = self.lists.wait_for(Option::is_some);
        let late = || format!("no list came within {} s", limit.as_secs());
        let list = tokio::time::timeout(limit, came).await.with_context(late)?;
        let list = list.context("the stream of lists ended before its first")?;
        list.clone().context("there is a list")
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

fn delete_sockets(dir: &Path) -> Result<()> {
    let failed = || format!("delete the sockets of {}", dir.display());
    for entry in std::fs::read_dir(dir).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        // A plugin that is about to end may be faster.
        let gone = match entry.file_type() {
            Ok(kind) if kind.is_socket() => std::fs::remove_file(entry.path()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        gone.or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
        .with_context(failed)?;
    }
    Ok(())
}

struct Registrar {
    dir: PathBuf,
    registered: mpsc::UnboundedSender<Registered>,
}

#[tonic::async_trait]
impl Registration for Registrar {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let at = Instant::now();
        let request = request.into_inner();
        let dialled = Instant::now();
        let api = device_plugin::kubelet::plugin(self.dir.join(&request.endpoint)).await;
        let mut api = api.map_err(|error| Status::internal(format!("dial: {error}")))?;
        let options = api.get_device_plugin_options(Empty {}).await?.into_inner();
        let (list, lists) = watch::channel(None);
        let watcher = tokio::spawn(watch(api.clone(), list)).abort_handle();
        // Nobody listens when the kubelet is about to end.
        let _ = self.registered.send(Registered {
            at,
            dialled,
            request,
            options,
            api,
            lists,
            watcher,
        });
        Ok(Response::new(Empty {}))
    }
}

/// One stream of lists, from its start to its end.
async fn watch(mut api: Api, lists: watch::Sender<Option<List>>) {
    let Ok(stream) = api.list_and_watch(Empty {}).await else {
        return;
    };
    let mut stream = stream.into_inner();
    while let Ok(Some(list)) = stream.message().await {
        let devices = Arc::new(list.devices);
        let at = Instant::now();
        lists.send_replace(Some(List { at, devices }));
    }
}
