//! Asks the kubelet which devices it could hand out and which are held (podresources API v1, a unix socket). Called
//! once per cycle by [`crate::gather`]. A kubelet that does not answer is *unknown*, never *nothing is held*.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::evidence::SocketId;
use crate::proto::pod_resources_lister_client::PodResourcesListerClient;
use crate::proto::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ContainerDevices,
    ListPodResourcesRequest, ListPodResourcesResponse,
};

/// How long the kubelet may usually take for both answers together.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// What the kubelet says about devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KubeletDevices {
    /// Resource name → ids that it could hand out.
    pub allocatable: BTreeMap<String, BTreeSet<String>>,
    /// Resource name → id → the container that holds it.
    pub held: BTreeMap<String, BTreeMap<String, Holder>>,
}

/// The container that holds a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
}

impl KubeletDevices {
    /// Ids that a container holds, of the named resources.
    #[must_use]
    pub fn held_of<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
        names
            .into_iter()
            .filter_map(|name| self.held.get(name))
            .flat_map(|ids| ids.keys().cloned())
            .collect()
    }

    /// Every resource name that was seen.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        self.allocatable
            .keys()
            .chain(self.held.keys())
            .map(String::as_str)
            .collect()
    }
}

/// Why the kubelet's answer is unknown.
#[derive(Debug, thiserror::Error)]
pub enum PodResourcesError {
    /// Nobody listens there.
    #[error("connect to the kubelet's socket {path}")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the transport said.
        #[source]
        source: tonic::transport::Error,
    },
    /// A call failed.
    #[error("call {call} on {path}: {code}: {message}")]
    Call {
        /// The method.
        call: &'static str,
        /// The socket.
        path: PathBuf,
        /// Status code.
        code: tonic::Code,
        /// The kubelet's text.
        message: String,
    },
    /// No answer in time.
    #[error("no answer from the kubelet on {path} within {deadline:?}")]
    Deadline {
        /// The socket.
        path: PathBuf,
        /// How long was waited.
        deadline: Duration,
    },
}

/// Who listens at `path`; `None` where that cannot be told.
#[must_use]
pub fn socket_id(path: &Path) -> Option<SocketId> {
    let found = std::fs::metadata(path).ok()?;
    let nanoseconds = i32::try_from(found.ctime_nsec()).ok()?;
    Some(SocketId {
        device: found.dev(),
        inode: found.ino(),
        changed: Timestamp::new(found.ctime(), nanoseconds).ok()?,
    })
}

/// A connection with the kubelet, kept from question to question while the same kubelet listens.
#[derive(Debug, Default)]
pub struct Connection(Option<(SocketId, Channel)>);

impl Connection {
    /// Both answers of the kubelet behind `socket`; together they may take `deadline`.
    ///
    /// # Errors
    /// When the kubelet cannot be reached, refuses, or does not answer in time.
    pub async fn ask(
        &mut self,
        socket: &Path,
        deadline: Duration,
    ) -> Result<KubeletDevices, PodResourcesError> {
        let late = || PodResourcesError::Deadline {
            path: socket.to_owned(),
            deadline,
        };
        tokio::time::timeout(deadline, self.ask_kept(socket))
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    /// What fails over a kept connection is asked once more over a new one; nothing is kept of what failed.
    async fn ask_kept(&mut self, socket: &Path) -> Result<KubeletDevices, PodResourcesError> {
        let listens = socket_id(socket);
        let kept = self.0.take();
        if let Some((id, channel)) = kept.filter(|(id, _)| Some(id) == listens.as_ref())
            && let Ok(devices) = ask_both(channel.clone(), socket).await
        {
            self.0 = Some((id, channel));
            return Ok(devices);
        }
        let channel = connect(socket).await?;
        let devices = ask_both(channel.clone(), socket).await?;
        self.0 = listens.map(|id| (id, channel));
        Ok(devices)
    }
}

async fn ask_both(channel: Channel, socket: &Path) -> Result<KubeletDevices, PodResourcesError> {
    let failed = |call| {
        move |status: tonic::Status| PodResourcesError::Call {
            call,
            path: socket.to_owned(),
            code: status.code(),
            message: status.message().to_owned(),
        }
    };
    let mut client = PodResourcesListerClient::new(channel).max_decoding_message_size(16 << 20);
    let allocatable = client
        .get_allocatable_resources(AllocatableResourcesRequest {})
        .await
        .map_err(failed("GetAllocatableResources"))?
        .into_inner();
    let held = client
        .list(ListPodResourcesRequest {})
        .await
        .map_err(failed("List"))?
        .into_inner();
    Ok(KubeletDevices {
        allocatable: collect_allocatable(allocatable),
        held: collect_held(held),
    })
}

async fn connect(socket: &Path) -> Result<Channel, PodResourcesError> {
    let path = socket.to_owned();
    // The URI is never resolved: the connector below opens the socket.
    Endpoint::from_static("http://kubelet.invalid")
        .connect_with_connector(tower::service_fn(move |_: Uri| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        }))
        .await
        .map_err(|source| PodResourcesError::Connect {
            path: socket.to_owned(),
            source,
        })
}

fn collect_allocatable(answer: AllocatableResourcesResponse) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for ContainerDevices {
        resource_name,
        device_ids,
    } in answer.devices
    {
        all.entry(resource_name).or_default().extend(device_ids);
    }
    all
}

fn collect_held(answer: ListPodResourcesResponse) -> BTreeMap<String, BTreeMap<String, Holder>> {
    let mut held: BTreeMap<String, BTreeMap<String, Holder>> = BTreeMap::new();
    for pod in answer.pod_resources {
        for container in pod.containers {
            let holder = Holder {
                namespace: pod.namespace.clone(),
                pod: pod.name.clone(),
                container: container.name,
            };
            for devices in container.devices {
                let of_resource = held.entry(devices.resource_name).or_default();
                of_resource.extend(
                    devices
                        .device_ids
                        .into_iter()
                        .map(|id| (id, holder.clone())),
                );
            }
        }
    }
    held
}

#[cfg(test)]
mod tests;
