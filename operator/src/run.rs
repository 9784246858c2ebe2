//! `operator run`: servers, leadership, caches, and the controller until a signal ends it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use crds::GpuRdmaCluster;
use futures::StreamExt;
use kube::runtime::controller::{Config as ControllerConfig, Controller, Error as ControllerError};
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};

use crate::backoff::Backoff;
use crate::config::Config;
use crate::controller::{Context, bursts, on_error, reconcile_readable};
use crate::events::Events;
use crate::guarded::Guarded;
use crate::health::{self, Readiness};
use crate::install::check;
use crate::leader::Leadership;
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::stores::Stores;

/// A value that turns true once the process shall end.
type Stop = watch::Receiver<bool>;

/// Runs until SIGTERM or SIGINT, or until the Lease is lost.
pub async fn run(config: &Path, namespace: &str, identity: &str) -> anyhow::Result<()> {
    let config = Config::load(config)?;
    let client = Client::try_default()
        .await
        .context("cannot find the Kubernetes API")?;
    let (metrics, readiness) = (Metrics::default(), Readiness::default());
    let stop = stop_on_signal()?;
    serve(
        config.health_port,
        health::health(readiness.clone()),
        stop.clone(),
    );
    serve(
        config.metrics_port,
        health::metrics(metrics.clone()),
        stop.clone(),
    );
    check::served(&client).await?;
    readiness.set(true);
    let mut leadership = Leadership::bid(client.clone(), namespace, identity).await?;
    let won = tokio::select! {
        won = leadership.won() => { won?; true }
        () = ended(stop.clone()) => false,
    };
    let result = if won {
        metrics.leads(true);
        tracing::info!(identity, "leading");
        lead(
            client,
            config,
            namespace,
            identity,
            metrics,
            &mut leadership,
            stop,
        )
        .await
    } else {
        Ok(())
    };
    leadership.give_back().await;
    result
}

async fn lead(
    client: Client,
    config: Config,
    namespace: &str,
    identity: &str,
    metrics: Metrics,
    leadership: &mut Leadership,
    stop: Stop,
) -> anyhow::Result<()> {
    let bell = Arc::new(Notify::new());
    let (stores, tasks) = Stores::start(&client, namespace, &bell);
    let context = Context {
        events: Events::new(client.clone(), identity),
        backoff: Backoff::default(),
        ledger: Ledger::default(),
        namespace: namespace.to_owned(),
        evictions: patient().await?,
        client,
        stores,
        metrics,
        config,
    };
    let result = tokio::select! {
        result = control(Arc::new(context), bell, stop) => result,
        () = leadership.lost() => Err(anyhow::anyhow!("the Lease was lost")),
    };
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    result
}

/// A client that hands a refusal on instead of asking again: the rollout counts its tries.
async fn patient() -> anyhow::Result<Client> {
    let mut config = kube::Config::infer()
        .await
        .context("cannot find the Kubernetes API")?;
    config.default_retry = false;
    Client::try_from(config).context("cannot make a client for evictions")
}

async fn control(context: Arc<Context>, bell: Arc<Notify>, stop: Stop) -> anyhow::Result<()> {
    tokio::select! {
        filled = context.stores.wait_until_ready() => filled.context("a cache ended before it was filled")?,
        () = ended(stop.clone()) => return Ok(()),
    }
    tracing::info!("caches filled");
    let clusters = Api::<Guarded<GpuRdmaCluster>>::all(context.client.clone());
    Controller::new(clusters, watcher::Config::default())
        // One at a time: assignment is global, and two clusters must not decide on the same node at once.
        .with_config(ControllerConfig::default().concurrency(1))
        .reconcile_all_on(bursts(bell))
        .graceful_shutdown_on(ended(stop.clone()))
        .run(reconcile_readable, |cluster, error, context| on_error(&cluster, error, &context), context)
        .for_each(|result| async {
            if let Err(ControllerError::QueueError(error)) = result {
                tracing::warn!(error = %crate::error::chain(&error), "watch of clusters failed; it is tried again");
            }
        })
        .await;
    if *stop.borrow() {
        Ok(())
    } else {
        bail!("the controller ended by itself")
    }
}

fn stop_on_signal() -> anyhow::Result<Stop> {
    let (sender, receiver) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        sender.send_replace(true);
        // The channel stays open until everything has stopped.
        sender.closed().await;
    });
    Ok(receiver)
}

async fn ended(mut stop: Stop) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// A port that cannot be served ends the process: a probe would kill it anyway, without saying why.
fn serve(port: u16, router: axum::Router, stop: Stop) {
    tokio::spawn(async move {
        if let Err(error) = health::serve(port, router, ended(stop)).await {
            tracing::error!(error = %crate::error::chain(&error), "cannot serve");
            std::process::exit(1);
        }
    });
}
