//! A stand-in for NVIDIA's device plugin: offers the node's GPUs by their UUIDs under a resource name, all healthy, on a
//! socket of the same name as the real one's (`internal/plugin/server.go` of NVIDIA/k8s-device-plugin).

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result};
use device_plugin::proto::device_plugin_server::{DevicePlugin, DevicePluginServer};
use device_plugin::{kubelet, proto};
use futures::{Stream, StreamExt, stream};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

const GPUS: &str = "/proc/driver/nvidia/gpus";

struct Foreign {
    ids: Vec<String>,
}

/// Serves and registers until it is killed.
pub fn run(resource: &str, kubelet_dir: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start a runtime")?;
    runtime.block_on(serve(resource, kubelet_dir, uuids()?))
}

/// UUIDs of the GPUs that the driver has.
fn uuids() -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for gpu in std::fs::read_dir(GPUS).context(GPUS)? {
        let text = std::fs::read_to_string(gpu?.path().join("information"))?;
        let mut lines = text.lines();
        let uuid = lines.find_map(|line| line.strip_prefix("GPU UUID:"));
        ids.extend(uuid.map(|uuid| uuid.trim().to_owned()));
    }
    Ok(ids)
}

async fn serve(resource: &str, kubelet_dir: &Path, ids: Vec<String>) -> Result<()> {
    let (_, base) = resource.rsplit_once('/').unwrap_or(("", resource));
    let name = format!("nvidia-{base}.sock");
    let socket = kubelet_dir.join(&name);
    let _ = std::fs::remove_file(&socket);
    let listener =
        UnixListener::bind(&socket).with_context(|| format!("bind {}", socket.display()))?;
    let service = DevicePluginServer::new(Foreign { ids });
    let incoming = UnixListenerStream::new(listener);
    let server = tonic::transport::Server::builder().serve_with_incoming_shutdown(
        service,
        incoming,
        std::future::pending(),
    );
    let server = tokio::spawn(server);
    let kubelet = kubelet_dir.join(proto::KUBELET_SOCKET);
    kubelet::register(&kubelet, &name, resource, Duration::from_secs(10)).await?;
    server.await.context("serve")?.context("serve")
}

#[tonic::async_trait]
impl DevicePlugin for Foreign {
    type ListAndWatchStream =
        Pin<Box<dyn Stream<Item = Result<proto::ListAndWatchResponse, Status>> + Send>>;

    async fn get_device_plugin_options(
        &self,
        _: Request<proto::Empty>,
    ) -> Result<Response<proto::DevicePluginOptions>, Status> {
        Ok(Response::new(proto::OPTIONS))
    }

    async fn list_and_watch(
        &self,
        _: Request<proto::Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        let device = |id: &String| proto::Device {
            id: id.clone(),
            health: proto::HEALTHY.to_owned(),
            topology: None,
        };
        let devices = self.ids.iter().map(device).collect();
        let first = stream::once(async { Ok(proto::ListAndWatchResponse { devices }) });
        Ok(Response::new(Box::pin(first.chain(stream::pending()))))
    }

    async fn get_preferred_allocation(
        &self,
        _: Request<proto::PreferredAllocationRequest>,
    ) -> Result<Response<proto::PreferredAllocationResponse>, Status> {
        Ok(Response::new(proto::PreferredAllocationResponse::default()))
    }

    async fn allocate(
        &self,
        request: Request<proto::AllocateRequest>,
    ) -> Result<Response<proto::AllocateResponse>, Status> {
        let requests = request.get_ref().container_requests.iter();
        let container_responses = requests
            .map(|_| proto::ContainerAllocateResponse::default())
            .collect();
        Ok(Response::new(proto::AllocateResponse {
            container_responses,
        }))
    }

    async fn pre_start_container(
        &self,
        _: Request<proto::PreStartContainerRequest>,
    ) -> Result<Response<proto::PreStartContainerResponse>, Status> {
        Ok(Response::new(proto::PreStartContainerResponse {}))
    }
}
