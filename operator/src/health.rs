//! The HTTP side: `/livez` and `/readyz` on one port, `/metrics` on another.

use std::future::Future;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether the operator has started: a replica that waits to lead is ready too.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// From now on ready, or not.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    fn code(&self) -> StatusCode {
        if self.0.load(Ordering::Relaxed) {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

/// Why a port cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve on port {port}: another process may have it, see metricsPort and healthPort")]
pub struct ServeError {
    /// The port.
    port: u16,
    /// What the system said.
    #[source]
    source: std::io::Error,
}

/// The routes of the health port.
pub fn health(readiness: Readiness) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route(
            "/readyz",
            get(|State(readiness): State<Readiness>| async move { readiness.code() }),
        )
        .with_state(readiness)
}

/// The routes of the metrics port.
pub fn metrics(metrics: Metrics) -> Router {
    let text = |State(metrics): State<Metrics>| async move {
        ([(header::CONTENT_TYPE, OPEN_METRICS)], metrics.text()).into_response()
    };
    Router::new()
        .route("/metrics", get(text))
        .with_state(metrics)
}

/// Serves until `stop` ends.
pub async fn serve(
    port: u16,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    // The IPv6 wildcard takes IPv4 too; a host without IPv6 has only the other.
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(("0.0.0.0", port))
            .await
            .map_err(|source| ServeError { port, source })?,
    };
    axum::serve(listener, router)
        .with_graceful_shutdown(stop)
        .await
        .map_err(|source| ServeError { port, source })
}
