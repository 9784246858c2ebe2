//! The `DevicePlugin` service of one resource: thin; the answers come from [`crate::allocate`] and [`crate::prefer`].

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use host::machine::verbs::VerbsOwner;
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use topology::fact::Fact;
use topology::node_file::DeviceNode;

use crate::allocate::{self, AllocateError, Host};
use crate::owners::Owners;
use crate::prefer;
use crate::proto;
use crate::proto::device_plugin_server::DevicePlugin;
use crate::resource::{Resource, Snapshot};

/// Serves one resource.
pub(crate) struct Service {
    /// Resource name.
    pub(crate) name: String,
    /// What is true now.
    pub(crate) snapshots: watch::Receiver<Arc<Snapshot>>,
    /// Number of open `ListAndWatch` streams.
    pub(crate) streams: watch::Sender<usize>,
    /// Turns true when the server closes.
    pub(crate) closing: watch::Receiver<bool>,
    /// The host's `/dev`, where it is mounted.
    pub(crate) dev: Option<PathBuf>,
    /// Who the uverbs devices belong to.
    pub(crate) owners: Arc<Owners>,
}

impl Service {
    fn resource(&self) -> Option<Arc<Resource>> {
        self.snapshots.borrow().resource(&self.name)
    }

    fn answer(
        &self,
        request: &proto::AllocateRequest,
    ) -> Result<proto::AllocateResponse, AllocateError> {
        let gone = || AllocateError::Gone {
            resource: self.name.clone(),
        };
        let resource = self.resource().ok_or_else(gone)?;
        let host = Host {
            present: &|node| is_present(self.dev.as_deref(), node),
            owner: &|number| owner(&self.owners, number),
        };
        allocate::allocate(&resource, request, &host)
    }
}

/// Who a uverbs device belongs to at this moment. The kernel answers from memory: no firmware is asked.
fn owner(owners: &Owners, number: u32) -> VerbsOwner {
    let owner = owners.owner(number);
    let why = match &owner.rdma {
        Fact::Known(_) => return owner,
        Fact::Absent => "/sys does not show it",
        Fact::Unreadable(why) => why,
    };
    tracing::warn!(
        "whose /dev/infiniband/uverbs{number} is cannot be told, the node file is believed: {why}"
    );
    owner
}

/// Whether the host has the node. Without a view of the host's `/dev` the node file is believed, and so it is where
/// looking fails for another reason than absence.
fn is_present(dev: Option<&Path>, node: &DeviceNode) -> bool {
    let (Some(dev), Some(below)) = (dev, node.host_path.strip_prefix("/dev/")) else {
        return true;
    };
    dev.join(below).try_exists().unwrap_or(true)
}

type Listings = Pin<Box<dyn Stream<Item = Result<proto::ListAndWatchResponse, Status>> + Send>>;

#[tonic::async_trait]
impl DevicePlugin for Service {
    type ListAndWatchStream = Listings;

    async fn get_device_plugin_options(
        &self,
        _: Request<proto::Empty>,
    ) -> Result<Response<proto::DevicePluginOptions>, Status> {
        Ok(Response::new(proto::OPTIONS))
    }

    async fn list_and_watch(&self, _: Request<proto::Empty>) -> Result<Response<Listings>, Status> {
        tracing::info!(resource = self.name, "the kubelet opened a stream");
        let listing = Listing {
            name: self.name.clone(),
            snapshots: self.snapshots.clone(),
            closing: self.closing.clone(),
            sent: None,
            _open: OpenStream::new(self.streams.clone()),
        };
        Ok(Response::new(Box::pin(futures::stream::unfold(
            listing,
            Listing::next,
        ))))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<proto::PreferredAllocationRequest>,
    ) -> Result<Response<proto::PreferredAllocationResponse>, Status> {
        Ok(Response::new(prefer::prefer(
            self.resource().as_deref(),
            request.get_ref(),
        )))
    }

    async fn allocate(
        &self,
        request: Request<proto::AllocateRequest>,
    ) -> Result<Response<proto::AllocateResponse>, Status> {
        self.answer(request.get_ref())
            .map(Response::new)
            .map_err(|error| {
                tracing::warn!(%error, "allocation refused");
                Status::invalid_argument(error.to_string())
            })
    }

    async fn pre_start_container(
        &self,
        _: Request<proto::PreStartContainerRequest>,
    ) -> Result<Response<proto::PreStartContainerResponse>, Status> {
        Ok(Response::new(proto::PreStartContainerResponse {}))
    }
}

/// One `ListAndWatch` stream. Each follows the snapshots for itself, so several may overlap.
struct Listing {
    name: String,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    closing: watch::Receiver<bool>,
    sent: Option<Vec<proto::Device>>,
    _open: OpenStream,
}

impl Listing {
    /// The next list that differs from the last one sent here; the first one is sent at once, even if empty.
    async fn next(mut self) -> Option<(Result<proto::ListAndWatchResponse, Status>, Self)> {
        loop {
            if *self.closing.borrow_and_update() {
                return None;
            }
            if let Some(devices) = self.news() {
                self.sent = Some(devices.clone());
                return Some((Ok(proto::ListAndWatchResponse { devices }), self));
            }
            tokio::select! {
                changed = self.snapshots.changed() => changed.ok()?,
                changed = self.closing.changed() => changed.ok()?,
            }
        }
    }

    fn news(&mut self) -> Option<Vec<proto::Device>> {
        let resource = self.snapshots.borrow_and_update().resource(&self.name);
        match resource {
            Some(resource) => {
                Some(resource.listing()).filter(|list| self.sent.as_ref() != Some(list))
            }
            // The resource is about to be closed; an empty list would drop devices that may be in use.
            None => self.sent.is_none().then(Vec::new),
        }
    }
}

/// Counts as open until it is dropped, which the server does when the connection or the call ends.
struct OpenStream(watch::Sender<usize>);

impl OpenStream {
    fn new(count: watch::Sender<usize>) -> Self {
        count.send_modify(|open| *open += 1);
        Self(count)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}
