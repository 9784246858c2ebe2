//! Errors of a reconciliation, and the one place that decides what follows from each: metric label, Event, delay.

use std::time::Duration;

/// What went wrong in a reconciliation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused or could not be reached.
    #[error("cannot {operation} {object}")]
    Api {
        /// What was tried.
        operation: &'static str,
        /// Kind and name.
        object: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Several objects could not be written; the others were.
    #[error("{objects} objects could not be written: {names}")]
    Several {
        /// How many.
        objects: usize,
        /// The first of them.
        names: String,
        /// What went wrong with the first.
        #[source]
        first: Box<Error>,
    },
    /// A node changed between reading it and writing its taints.
    #[error("node {node} changed while its taints were written; it is read again")]
    NodeChanged {
        /// The node.
        node: String,
    },
    /// The caches are not filled: absence means nothing yet.
    #[error("the caches are not filled yet")]
    NotSynced,
    /// A cluster on its way out has not let go of everything yet.
    #[error("GpuRdmaCluster {cluster} lets go of its nodes; looked at again at once")]
    Releasing {
        /// The cluster.
        cluster: String,
    },
    /// An object has no JSON form.
    #[error("cannot render {object}")]
    Render {
        /// Kind and name.
        object: String,
        /// What the serialiser said.
        #[source]
        source: serde_json::Error,
    },
    /// The finalizer could not be set or taken away.
    #[error("cannot handle the finalizer of GpuRdmaCluster {cluster}")]
    Finalizer {
        /// The cluster.
        cluster: String,
        /// What the helper said.
        #[source]
        source: Box<kube::runtime::finalizer::Error<Error>>,
    },
}

/// A bounded class of errors: metric label and Event reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Caches still fill.
    NotSynced,
    /// Someone else owns a field, or wrote first.
    Conflict,
    /// RBAC or admission said no.
    Forbidden,
    /// The object was refused as malformed.
    Invalid,
    /// The object went away.
    Gone,
    /// The server asks to slow down, or cannot be reached.
    Unavailable,
    /// A bug, or an answer that cannot be read.
    Internal,
}

/// What follows from an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handling {
    /// Label of the metric.
    pub label: &'static str,
    /// Reason and remedy of the Event; none where the error heals by itself.
    pub event: Option<(&'static str, &'static str)>,
    /// First delay before the next try; doubled by each failure in a row.
    pub delay: Duration,
}

impl Category {
    /// Metric label, Event and delay of each category.
    #[must_use]
    pub const fn handling(self) -> Handling {
        let (label, event, seconds) = match self {
            Self::NotSynced => ("not_synced", None, 1),
            Self::Gone => ("gone", None, 1),
            Self::Unavailable => ("unavailable", None, 2),
            Self::Conflict => {
                let remedy =
                    "See metadata.managedFields of that object for who else writes the field.";
                ("conflict", Some(("FieldConflict", remedy)), 2)
            }
            Self::Forbidden => {
                let remedy = "Check the operator's ClusterRole and admission policies.";
                ("forbidden", Some(("Forbidden", remedy)), 30)
            }
            Self::Invalid => {
                let remedy =
                    "The installed CRDs may be older than this operator: upgrade the chart.";
                ("invalid", Some(("Rejected", remedy)), 30)
            }
            Self::Internal => (
                "internal",
                Some(("InternalError", "See the operator's log.")),
                30,
            ),
        };
        Handling {
            label,
            event,
            delay: Duration::from_secs(seconds),
        }
    }
}

impl Error {
    /// The class of this error.
    #[must_use]
    pub fn category(&self) -> Category {
        match self {
            Self::Api { source, .. } => of_client(source),
            Self::Several { first, .. } => first.category(),
            Self::NodeChanged { .. } => Category::Conflict,
            Self::NotSynced | Self::Releasing { .. } => Category::NotSynced,
            Self::Render { .. } => Category::Internal,
            Self::Finalizer { source, .. } => of_finalizer(source),
        }
    }

    /// The error and its causes in one line.
    #[must_use]
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error and its causes in one line, each said once.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

/// The class of an error of the Kubernetes client.
#[must_use]
pub fn of_client(error: &kube::Error) -> Category {
    match error {
        kube::Error::Api(status) => match status.code {
            401 | 403 => Category::Forbidden,
            404 | 410 => Category::Gone,
            409 => Category::Conflict,
            400 | 413 | 415 | 422 => Category::Invalid,
            _ => Category::Unavailable,
        },
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => {
            Category::Unavailable
        }
        _ => Category::Internal,
    }
}

fn of_finalizer(error: &kube::runtime::finalizer::Error<Error>) -> Category {
    use kube::runtime::finalizer::Error as Finalizer;
    match error {
        Finalizer::ApplyFailed(inner) | Finalizer::CleanupFailed(inner) => inner.category(),
        Finalizer::AddFinalizer(source) | Finalizer::RemoveFinalizer(source) => of_client(source),
        Finalizer::UnnamedObject | Finalizer::InvalidFinalizer => Category::Internal,
    }
}

#[cfg(test)]
mod tests;
