//! A typed client for a cluster that lives in a network namespace of its own.

use std::fs::File;
use std::future::Future;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use nix::sched::{CloneFlags, setns};

use e2e::cluster::Cluster;

/// Runs asynchronous work with a client, on a thread of its own that has moved into the cluster's network namespace.
pub(crate) fn with_client<T, F>(
    cluster: &Cluster,
    work: impl FnOnce(Client) -> F + Send,
) -> Result<T>
where
    T: Send,
    F: Future<Output = Result<T>>,
{
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enter(cluster)?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("start a runtime")?;
            runtime.block_on(async { work(connect(cluster).await?).await })
        });
        thread
            .join()
            .map_err(|_| anyhow::anyhow!("the client's thread panicked"))?
    })
}

fn enter(cluster: &Cluster) -> Result<()> {
    let path = cluster.network_namespace();
    let namespace = File::open(&path).with_context(|| format!("open {}", path.display()))?;
    setns(namespace, CloneFlags::CLONE_NEWNET).context("enter the cluster's network namespace")
}

async fn connect(cluster: &Cluster) -> Result<Client> {
    let kubeconfig =
        Kubeconfig::read_from(cluster.kubeconfig()).context("read the admin's kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Client::try_from(config).context("make a client")
}
