//! Leadership by a Lease. A replica that loses it ends; the kubelet starts it again as one that waits.
//!
//! The library tells only of changes that it reads. While it cannot read, nothing changes: so a leader reads the Lease
//! itself, and one that cannot confirm it for the Lease's duration no longer leads, whoever does.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const LEASE: &str = "gpu-rdma-operator";
/// Seconds that a lease lives without renewal.
const DURATION: u64 = 15;
/// Seconds before its end in which it is renewed.
const GRACE: u64 = 5;
/// How often a leader reads its Lease, and how long it waits for an answer.
const CONFIRM: Duration = Duration::from_secs(5);
/// How long a replica that ends tries to give the Lease back: it runs out by itself.
const GIVE_BACK: Duration = Duration::from_secs(5);

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
    leases: Api<Lease>,
    identity: String,
    state: watch::Receiver<bool>,
    task: JoinHandle<Result<LeaseManager, LeaseManagerError>>,
}

impl Leadership {
    /// Starts to bid for the Lease.
    pub async fn bid(client: Client, namespace: &str, identity: &str) -> Result<Self, LeaderError> {
        let leases = Api::namespaced(client.clone(), namespace);
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
        Ok(Self {
            leases,
            identity: identity.to_owned(),
            state,
            task,
        })
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
        tokio::select! {
            // A closed channel means that nothing renews the Lease: lost as well.
            _ = self.state.wait_for(|leads| !*leads) => {}
            () = unconfirmed(&self.leases, &self.identity) => {}
        }
    }

    /// Gives the Lease back, so that the next replica need not wait for its end.
    pub async fn give_back(mut self) {
        drop(self.state);
        match timeout(GIVE_BACK, &mut self.task).await {
            Ok(Ok(Ok(_))) => tracing::info!("lease given back"),
            Ok(Ok(Err(error))) => {
                tracing::warn!(error = %crate::error::chain(&error), "cannot give the lease back");
            }
            Ok(Err(error)) => tracing::warn!(%error, "the lease's task failed"),
            Err(_) => {
                self.task.abort();
                tracing::warn!("the lease is not given back in time; it runs out by itself");
            }
        }
    }
}

/// Whose a Lease is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Ours, and renewed within its duration.
    Ours,
    /// Another replica's.
    Theirs,
    /// Nobody's, or no longer renewed.
    Expired,
}

fn held(lease: &Lease, identity: &str, now: Timestamp) -> Held {
    let spec = lease.spec.as_ref();
    match spec.and_then(|spec| spec.holder_identity.as_deref()) {
        None => Held::Expired,
        Some(holder) if holder != identity => Held::Theirs,
        Some(_) => {
            let renewed = spec.and_then(|spec| spec.renew_time.as_ref());
            let age = renewed.map(|renewed| now.duration_since(renewed.0).unsigned_abs());
            if age.is_some_and(|age| age < Duration::from_secs(DURATION)) {
                Held::Ours
            } else {
                Held::Expired
            }
        }
    }
}

/// Returns once another replica has the Lease, or once it could not be confirmed for its duration.
async fn unconfirmed(leases: &Api<Lease>, identity: &str) {
    let mut confirmed = Instant::now();
    while confirmed.elapsed() < Duration::from_secs(DURATION) {
        sleep(CONFIRM).await;
        let asked = Instant::now();
        match timeout(CONFIRM, leases.get(LEASE)).await {
            Ok(Ok(lease)) => match held(&lease, identity, Timestamp::now()) {
                Held::Ours => confirmed = asked,
                Held::Theirs => return,
                Held::Expired => tracing::warn!("Lease {LEASE} is not renewed"),
            },
            Ok(Err(error)) => {
                tracing::warn!(error = %crate::error::chain(&error), "cannot confirm Lease {LEASE}");
            }
            Err(_) => tracing::warn!("no answer on Lease {LEASE} within {} s", CONFIRM.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests;
