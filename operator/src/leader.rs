//! Leadership by a Lease. A replica that loses it ends; the kubelet starts it again as one that waits.

use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const LEASE: &str = "gpu-rdma-operator";
/// Seconds that a lease lives without renewal.
const DURATION: u64 = 15;
/// Seconds before its end in which it is renewed.
const GRACE: u64 = 5;

/// Why leadership failed.
#[derive(Debug, thiserror::Error)]
pub enum LeaderError {
    /// The Lease cannot be made or read.
    #[error("cannot use Lease {namespace}/{LEASE}")]
    Lease {
        /// Its namespace.
        namespace: String,
        /// What the library said.
        #[source]
        source: Box<LeaseManagerError>,
    },
    /// The task that renews the Lease ended.
    #[error("Lease {LEASE} is no longer renewed")]
    Ended,
}

/// A bid for the Lease.
pub struct Leadership {
    state: watch::Receiver<bool>,
    task: JoinHandle<Result<LeaseManager, LeaseManagerError>>,
}

impl Leadership {
    /// Starts to bid for the Lease.
    pub async fn bid(client: Client, namespace: &str, identity: &str) -> Result<Self, LeaderError> {
        let manager = LeaseManagerBuilder::new(client, LEASE)
            .with_namespace(namespace)
            .with_identity(identity)
            .with_duration(DURATION)
            .with_grace(GRACE)
            .build()
            .await
            .map_err(|source| LeaderError::Lease {
                namespace: namespace.to_owned(),
                source: Box::new(source),
            })?;
        let (state, task) = manager.watch().await;
        Ok(Self { state, task })
    }

    /// Waits until this replica leads.
    pub async fn won(&mut self) -> Result<(), LeaderError> {
        self.state
            .wait_for(|leads| *leads)
            .await
            .map(drop)
            .map_err(|_| LeaderError::Ended)
    }

    /// Waits until this replica no longer leads.
    pub async fn lost(&mut self) {
        // A closed channel means that nothing renews the Lease: lost as well.
        let _ = self.state.wait_for(|leads| !*leads).await;
    }

    /// Gives the Lease back, so that the next replica need not wait for its end.
    pub async fn give_back(self) {
        drop(self.state);
        match self.task.await {
            Ok(Ok(_)) => tracing::info!("lease given back"),
            Ok(Err(error)) => {
                tracing::warn!(error = %crate::error::chain(&error), "cannot give the lease back");
            }
            Err(error) => tracing::warn!(%error, "the lease's task failed"),
        }
    }
}
