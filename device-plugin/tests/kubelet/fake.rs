//! A kubelet's device manager, as far as a plugin sees it.
//!
//! Faithful where it hurts: a start deletes every socket of the directory; Register dials the plugin back and asks for
//! its options before it answers; clients are kept by resource name, and when *any* stream of a resource ends, the client
//! that is registered under that name by then is dropped (kubernetes/kubernetes#121994).

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use device_plugin::kubelet;
use device_plugin::proto::device_plugin_client::DevicePluginClient;
use device_plugin::proto::registration_server::{Registration, RegistrationServer};
use device_plugin::proto::{Device, DevicePluginOptions, Empty, KUBELET_SOCKET, RegisterRequest};
use tokio::net::UnixListener;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

pub type Api = DevicePluginClient<Channel>;

/// What happened so far.
#[derive(Clone, Default)]
pub struct Log {
    /// Registrations that were accepted, with what `GetDevicePluginOptions` answered.
    pub registrations: Vec<(RegisterRequest, DevicePluginOptions)>,
    /// Every list that came, with its endpoint.
    pub lists: Vec<(String, Vec<Device>)>,
    /// Endpoints whose stream ended.
    pub ended: Vec<String>,
}

#[derive(Default)]
struct State {
    log: Log,
    clients: BTreeMap<String, Client>,
    refusals: usize,
    dialled: bool,
}

struct Client {
    endpoint: String,
    api: Api,
    watcher: AbortHandle,
}

/// A running kubelet.
pub struct Kubelet {
    state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

struct Registrar {
    dir: PathBuf,
    state: Arc<Mutex<State>>,
}

impl Kubelet {
    /// Starts as a kubelet does: other sockets go, then its own comes.
    pub fn start(dir: &Path) -> Self {
        Self::start_refusing(dir, 0)
    }

    /// One that refuses the first registrations.
    pub fn start_refusing(dir: &Path, refusals: usize) -> Self {
        delete_sockets(dir);
        Self::serve(
            dir,
            UnixListener::bind(dir.join(KUBELET_SOCKET)).unwrap(),
            refusals,
        )
    }

    /// One whose socket takes the place of another's in one step, and that leaves the other sockets alone.
    pub fn replace(dir: &Path) -> Self {
        let new = dir.join("new");
        let listener = UnixListener::bind(&new).unwrap();
        std::fs::rename(new, dir.join(KUBELET_SOCKET)).unwrap();
        Self::serve(dir, listener, 0)
    }

    fn serve(dir: &Path, listener: UnixListener, refusals: usize) -> Self {
        let state = Arc::new(Mutex::new(State {
            refusals,
            ..State::default()
        }));
        let registrar = Registrar {
            dir: dir.to_owned(),
            state: state.clone(),
        };
        let server = tokio::spawn(async move {
            let incoming = UnixListenerStream::new(listener);
            Server::builder()
                .serve_with_incoming(RegistrationServer::new(registrar), incoming)
                .await
                .unwrap();
        });
        Self { state, server }
    }

    /// Dies at once; its socket's file stays, as after SIGKILL.
    pub fn kill(self) {
        self.server.abort();
        for client in std::mem::take(&mut self.state.lock().unwrap().clients).into_values() {
            client.watcher.abort();
        }
    }

    pub fn log(&self) -> Log {
        self.state.lock().unwrap().log.clone()
    }

    /// Whether a registration has begun.
    pub fn dialled(&self) -> bool {
        self.state.lock().unwrap().dialled
    }

    /// The client that is registered for the resource.
    pub fn api(&self, resource: &str) -> Api {
        self.state.lock().unwrap().clients[resource].api.clone()
    }

    /// Closes the connection to the resource's plugin, without a word to it.
    pub fn hang_up(&self, resource: &str) {
        let client = self.state.lock().unwrap().clients.remove(resource).unwrap();
        client.watcher.abort();
    }

    /// Devices of the resource as the kubelet has them now; `None` while no plugin is connected.
    pub fn devices(&self, resource: &str) -> Option<Vec<Device>> {
        let state = self.state.lock().unwrap();
        let endpoint = &state.clients.get(resource)?.endpoint;
        state
            .log
            .lists
            .iter()
            .rev()
            .find(|(of, _)| of == endpoint)
            .map(|(_, devices)| devices.clone())
    }

    /// Health of each device of the resource, in the order of the list.
    pub fn health(&self, resource: &str) -> Option<Vec<String>> {
        Some(
            self.devices(resource)?
                .into_iter()
                .map(|device| device.health)
                .collect(),
        )
    }

    /// Waits until the kubelet has seen something.
    pub async fn until<T>(&self, what: &str, mut seen: impl FnMut(&Self) -> Option<T>) -> T {
        for _ in 0..6000 {
            if let Some(value) = seen(self) {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never seen: {what}");
    }

    /// Waits until the resource has this many devices in the list.
    pub async fn until_devices(&self, resource: &str, count: usize) -> Vec<Device> {
        let list = |k: &Self| k.devices(resource).filter(|devices| devices.len() == count);
        self.until(&format!("{count} devices of {resource}"), list)
            .await
    }

    /// Waits for this many registrations.
    pub async fn until_registrations(&self, count: usize) -> Vec<RegisterRequest> {
        let enough = |k: &Self| Some(k.log().registrations).filter(|all| all.len() >= count);
        let all = self.until(&format!("{count} registrations"), enough).await;
        all.into_iter().map(|(request, _)| request).collect()
    }
}

fn delete_sockets(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_socket() {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[tonic::async_trait]
impl Registration for Registrar {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let request = request.into_inner();
        self.state.lock().unwrap().dialled = true;
        self.refuse_some()?;
        if request.version != "v1beta1"
            || !device_plugin::accept::is_extended_resource(&request.resource_name)
        {
            return Err(Status::invalid_argument("version or resource name"));
        }
        let dialled = kubelet::plugin(self.dir.join(&request.endpoint)).await;
        let mut api = dialled.map_err(|error| Status::internal(format!("dial: {error}")))?;
        let options = api.get_device_plugin_options(Empty {}).await?.into_inner();
        self.connect(&request, api);
        self.state
            .lock()
            .unwrap()
            .log
            .registrations
            .push((request, options));
        Ok(Response::new(Empty {}))
    }
}

impl Registrar {
    fn refuse_some(&self) -> Result<(), Status> {
        let mut state = self.state.lock().unwrap();
        if state.refusals == 0 {
            return Ok(());
        }
        state.refusals -= 1;
        Err(Status::unavailable("not yet"))
    }

    fn connect(&self, request: &RegisterRequest, api: Api) {
        let (resource, endpoint) = (request.resource_name.clone(), request.endpoint.clone());
        let watching = watch(
            self.state.clone(),
            resource.clone(),
            endpoint.clone(),
            api.clone(),
        );
        let mut state = self.state.lock().unwrap();
        let watcher = tokio::spawn(watching).abort_handle();
        if let Some(old) = state.clients.insert(
            resource,
            Client {
                endpoint,
                api,
                watcher,
            },
        ) {
            old.watcher.abort();
        }
    }
}

/// One `ListAndWatch` stream, from its start to its end.
async fn watch(state: Arc<Mutex<State>>, resource: String, endpoint: String, mut api: Api) {
    if let Ok(stream) = api.list_and_watch(Empty {}).await {
        let mut stream = stream.into_inner();
        while let Ok(Some(list)) = stream.message().await {
            state
                .lock()
                .unwrap()
                .log
                .lists
                .push((endpoint.clone(), list.devices));
        }
    }
    let mut state = state.lock().unwrap();
    state.log.ended.push(endpoint);
    if let Some(current) = state.clients.remove(&resource) {
        current.watcher.abort();
    }
}
