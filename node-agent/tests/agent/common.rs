//! A simulated node: the tree of a described machine, device nodes, and a kubelet on a real socket.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use host::fixture::{FixtureOptions, write};
use host::root::Root;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use node_agent::proto::pod_resources_lister_server::{
    PodResourcesLister, PodResourcesListerServer,
};
use node_agent::proto::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ContainerDevices,
    ContainerResources, ListPodResourcesRequest, ListPodResourcesResponse, PodResources,
};
use node_agent::session::Session;
use node_agent::settings::Settings;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};
use topology::machine::Machine;

/// A node in a temporary directory.
pub(crate) struct Node {
    pub(crate) settings: Settings,
    pub(crate) machine: Machine,
    /// What the agent's process remembers; a new one is a new process.
    pub(crate) session: RefCell<Session>,
    /// How much later than now the agent's turns are: an hour, so that every kubelet has settled.
    ahead: Cell<SignedDuration>,
    kubelet: Option<JoinHandle<()>>,
    directory: tempfile::TempDir,
}

/// What the kubelet answers: resource → ids, and resource → held ids.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    pub(crate) allocatable: Vec<(String, Vec<String>)>,
    pub(crate) held: Vec<(String, Vec<String>)>,
}

#[derive(Clone, Default)]
struct Kubelet(Arc<Mutex<Answers>>);

fn devices(of: &[(String, Vec<String>)]) -> Vec<ContainerDevices> {
    let devices = |(name, ids): &(String, Vec<String>)| ContainerDevices {
        resource_name: name.clone(),
        device_ids: ids.clone(),
    };
    of.iter().map(devices).collect()
}

#[tonic::async_trait]
impl PodResourcesLister for Kubelet {
    async fn list(
        &self,
        _: Request<ListPodResourcesRequest>,
    ) -> Result<Response<ListPodResourcesResponse>, Status> {
        let held = devices(&self.0.lock().unwrap().held);
        let container = ContainerResources {
            name: "main".to_owned(),
            devices: held,
        };
        let pod = PodResources {
            name: "job-0".to_owned(),
            namespace: "team".to_owned(),
            containers: vec![container],
        };
        Ok(Response::new(ListPodResourcesResponse {
            pod_resources: vec![pod],
        }))
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<AllocatableResourcesRequest>,
    ) -> Result<Response<AllocatableResourcesResponse>, Status> {
        let devices = devices(&self.0.lock().unwrap().allocatable);
        Ok(Response::new(AllocatableResourcesResponse { devices }))
    }
}

/// A machine of `topology/tests/machines`.
pub(crate) fn described(name: &str) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../topology/tests/machines")
        .join(format!("{name}.yaml"));
    let text = std::fs::read_to_string(&path).unwrap();
    topology::file::parse(&text).unwrap().machine
}

impl Node {
    /// The named machine with a GPU driver, its device nodes and no kubelet.
    pub(crate) fn new(name: &str) -> Self {
        Self::with(
            name,
            &FixtureOptions {
                name: name.to_owned(),
                ..FixtureOptions::default()
            },
        )
    }

    pub(crate) fn with(name: &str, options: &FixtureOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path());
        let machine = write(&described(name), options, &root).unwrap();
        let node = Self {
            settings: Settings::new(root),
            machine,
            session: RefCell::default(),
            ahead: Cell::new(SignedDuration::from_hours(1)),
            kubelet: None,
            directory,
        };
        node.device_nodes();
        node
    }

    fn device_nodes(&self) {
        let wanted = node_agent::injection::wanted_nodes(&self.machine.gpus, &self.machine.nics);
        for path in wanted {
            self.put(&path, "");
        }
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.settings.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The time of the next turn.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead.get()
    }

    pub(crate) fn ahead(&self) -> i64 {
        self.ahead.get().as_secs()
    }

    pub(crate) fn pass(&self, seconds: i64) {
        let more = SignedDuration::from_secs(seconds);
        self.ahead.set(self.ahead.get() + more);
    }

    /// The next turns are now: a kubelet that starts is young.
    pub(crate) fn stop_time(&self) {
        self.ahead.set(SignedDuration::ZERO);
    }

    /// The next turn is that of a new agent.
    pub(crate) fn restart_agent(&self) {
        self.session.replace(Session::default());
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.settings.root.join(path)).unwrap();
    }

    pub(crate) fn remove_dir(&self, path: &str) {
        std::fs::remove_dir_all(self.settings.root.join(path)).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.settings.root.join(path)).unwrap()
    }

    pub(crate) fn uuids(&self) -> Vec<String> {
        self.machine
            .gpus
            .iter()
            .map(|gpu| gpu.uuid.known().unwrap().clone())
            .collect()
    }

    /// Starts a kubelet, in place of the one before.
    pub(crate) fn start_kubelet(&mut self, answers: Answers) {
        self.stop_kubelet();
        let path = self.settings.root.join(&self.settings.kubelet_socket());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let incoming = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
        let kubelet = Kubelet(Arc::new(Mutex::new(answers)));
        let server = tonic::transport::Server::builder()
            .add_service(PodResourcesListerServer::new(kubelet))
            .serve_with_incoming(incoming);
        self.kubelet = Some(tokio::spawn(async { server.await.unwrap() }));
    }

    pub(crate) fn stop_kubelet(&mut self) {
        if let Some(kubelet) = self.kubelet.take() {
            kubelet.abort();
            self.remove(&self.settings.kubelet_socket());
        }
    }

    /// Every file with its content, and every directory and link.
    pub(crate) fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let mut tree = BTreeMap::new();
        walk(self.directory.path(), self.directory.path(), &mut tree);
        tree
    }
}

fn walk(top: &Path, at: &Path, tree: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("/{}", path.strip_prefix(top).unwrap().display());
        let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            tree.insert(name, b"directory".to_vec());
            walk(top, &path, tree);
        } else if kind.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            tree.insert(name, target.to_string_lossy().into_owned().into_bytes());
        } else if kind.is_file() {
            tree.insert(name, std::fs::read(&path).unwrap());
        }
    }
}
