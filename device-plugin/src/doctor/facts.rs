//! What [`super::checks`] judges: read once, from files, sockets and ports.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::machine::verbs::{self, VerbsOwner};
use host::root::Root;
use topology::fact::Fact;
use topology::node_file::{NodeDevice, NodeFile};

use crate::accept::{Source, chain};
use crate::link::Sightings;
use crate::proto::{self, KUBELET_SOCKET};
use crate::{endpoint, kubelet, ports};

/// A plugin that answers at all answers in milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// Where to look.
#[derive(Clone, Debug)]
pub struct Where {
    /// Node file and boot id.
    pub source: Source,
    /// The kubelet's device-plugins directory.
    pub kubelet_dir: PathBuf,
    /// What holds `/sys`.
    pub root: Root,
}

/// A Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// Somebody listens.
    Listening,
    /// The file is there, nobody listens.
    Deserted,
    /// No such file.
    Absent,
    /// Could not be found out.
    Unknown(String),
}

/// Why one of the plugin's sockets gave no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nobody listens.
    Deserted,
    /// The call failed.
    Failed(String),
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Content of the node file.
    pub node_file: Fact<String>,
    /// Content of the boot id file.
    pub boot_id: Fact<String>,
    /// The kubelet's directory.
    pub kubelet_dir: PathBuf,
    /// The kubelet's own socket.
    pub kubelet: SocketState,
    /// What each of the plugin's sockets serves, by file name; absent: there is no such directory.
    pub sockets: Fact<BTreeMap<String, Result<Vec<proto::Device>, Silence>>>,
    /// The ports of the node file's devices.
    pub ports: Sightings,
    /// Owners of the uverbs devices of the node file, by number.
    pub verbs: BTreeMap<u32, VerbsOwner>,
}

/// Looks at everything.
pub async fn gather(at: &Where) -> Facts {
    let node_file = read(&at.source.node_file);
    let file = node_file.known();
    let file = file.and_then(|text| NodeFile::parse(text).ok());
    Facts {
        boot_id: read(&at.source.boot_id_file),
        kubelet_dir: at.kubelet_dir.clone(),
        kubelet: socket_state(&at.kubelet_dir.join(KUBELET_SOCKET)),
        sockets: served(&at.kubelet_dir).await,
        ports: ports::sweep(&at.root, &ports::wanted(devices(file.as_ref()))),
        verbs: owners(&at.root, file.as_ref()),
        node_file,
    }
}

fn read(path: &Path) -> Fact<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Fact::Known(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Fact::Absent,
        Err(error) => Fact::Unreadable(format!("read {}: {error}", path.display())),
    }
}

fn devices(file: Option<&NodeFile>) -> impl Iterator<Item = &NodeDevice> {
    let resources = file.into_iter().flat_map(|file| &file.resources);
    resources.flat_map(|resource| &resource.devices)
}

fn owners(root: &Root, file: Option<&NodeFile>) -> BTreeMap<u32, VerbsOwner> {
    let nics = devices(file).flat_map(|device| &device.nics);
    nics.filter_map(|nic| nic.uverbs)
        .map(|number| (number, verbs::owner(root, number)))
        .collect()
}

fn socket_state(path: &Path) -> SocketState {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => SocketState::Listening,
        Err(error) if error.kind() == ErrorKind::NotFound => SocketState::Absent,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => SocketState::Deserted,
        Err(error) => SocketState::Unknown(format!("connect to {}: {error}", path.display())),
    }
}

async fn served(dir: &Path) -> Fact<BTreeMap<String, Result<Vec<proto::Device>, Silence>>> {
    let paths = match endpoint::own_sockets(dir) {
        Ok(paths) => paths,
        Err(error) if error.kind() == ErrorKind::NotFound => return Fact::Absent,
        Err(error) => return Fact::Unreadable(format!("read {}: {error}", dir.display())),
    };
    let mut served = BTreeMap::new();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        served.insert(name, ask(path).await);
    }
    Fact::Known(served)
}

async fn ask(path: PathBuf) -> Result<Vec<proto::Device>, Silence> {
    if endpoint::is_deserted(&path) {
        return Err(Silence::Deserted);
    }
    match tokio::time::timeout(ANSWER_LIMIT, first_list(path)).await {
        Ok(answer) => answer.map_err(Silence::Failed),
        Err(_) => Err(Silence::Failed(format!(
            "no answer within {} s",
            ANSWER_LIMIT.as_secs()
        ))),
    }
}

/// The first message of a stream of our own; the kubelet's stream is not touched by it.
async fn first_list(path: PathBuf) -> Result<Vec<proto::Device>, String> {
    let mut client = kubelet::plugin(path).await.map_err(|error| chain(&error))?;
    let stream = client.list_and_watch(proto::Empty {}).await;
    let first = stream
        .map_err(|status| status.to_string())?
        .into_inner()
        .message()
        .await;
    let list = first.map_err(|status| status.to_string())?;
    list.map(|list| list.devices)
        .ok_or_else(|| "the stream ended without a list".to_owned())
}
