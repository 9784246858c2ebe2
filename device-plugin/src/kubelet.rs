//! Calls the kubelet's Registration service over its Unix socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint as Target};
use tower::service_fn;

use crate::accept::chain;
use crate::proto;
use crate::proto::device_plugin_client::DevicePluginClient;
use crate::proto::registration_client::RegistrationClient;

/// A registration that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Nobody answers on kubelet.sock: the kubelet is not running (yet).
    #[error("connect to {path}: {why}")]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The kubelet said no.
    #[error("the kubelet refused to register {resource}: {why}")]
    Refused {
        /// Resource.
        resource: String,
        /// What it said.
        why: String,
    },
    /// The kubelet took longer than it should.
    #[error("the kubelet did not answer the registration of {resource} within {seconds} s")]
    Late {
        /// Resource.
        resource: String,
        /// The limit.
        seconds: u64,
    },
}

/// A channel over the Unix socket at `path`. The authority is `localhost`, as the kubelet itself sends it; nothing is
/// resolved.
pub async fn connect(path: PathBuf) -> Result<Channel, tonic::transport::Error> {
    let connector = service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    Target::from_static("http://localhost")
        .connect_with_connector(connector)
        .await
}

/// A client of the plugin behind `path` (for `doctor` and for tests).
pub async fn plugin(path: PathBuf) -> Result<DevicePluginClient<Channel>, tonic::transport::Error> {
    connect(path).await.map(DevicePluginClient::new)
}

/// Registers `resource`, served on the socket of the name `endpoint`. The kubelet calls the plugin back before it
/// answers, so the socket must be served already.
pub async fn register(
    kubelet_socket: &Path,
    endpoint: &str,
    resource: &str,
    limit: Duration,
) -> Result<(), RegisterError> {
    let path = kubelet_socket.to_owned();
    let channel = connect(path.clone()).await;
    let channel = channel.map_err(|error| RegisterError::Unreachable {
        path,
        why: chain(&error),
    })?;
    let request = proto::RegisterRequest {
        version: proto::VERSION.to_owned(),
        endpoint: endpoint.to_owned(),
        resource_name: resource.to_owned(),
        options: Some(proto::OPTIONS),
    };
    let mut client = RegistrationClient::new(channel);
    match tokio::time::timeout(limit, client.register(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(status)) => {
            let why = format!("{:?}: {}", status.code(), status.message());
            Err(RegisterError::Refused {
                resource: resource.to_owned(),
                why,
            })
        }
        Err(_) => Err(RegisterError::Late {
            resource: resource.to_owned(),
            seconds: limit.as_secs(),
        }),
    }
}
