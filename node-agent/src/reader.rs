//! Blocking work with a deadline, of which there is never more than one: a read in `/sys` that hangs cannot be ended, and
//! another one would hang beside it. Called by [`crate::gather`].

use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    /// The work, or that of an earlier call, has not ended.
    #[error(
        "reading the host takes longer than {0:?}: a device or a file system hangs; see the kernel's log"
    )]
    Hangs(Duration),
    /// The work was cut off.
    #[error("reading the host ended early")]
    Ended(#[from] JoinError),
}

/// The work under way.
#[derive(Debug)]
pub struct Reader<T>(Option<JoinHandle<T>>);

impl<T> Default for Reader<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Send + 'static> Reader<T> {
    /// Does `work` on a thread of its own, unless earlier work is still under way. A result that comes too late is of the
    /// past, and is thrown away.
    pub async fn read(
        &mut self,
        deadline: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReaderError> {
        if self.0.as_ref().is_some_and(|old| !old.is_finished()) {
            return Err(ReaderError::Hangs(deadline));
        }
        let task = self.0.insert(tokio::task::spawn_blocking(work));
        let result = tokio::time::timeout(deadline, task).await;
        let result = result.map_err(|_| ReaderError::Hangs(deadline))?;
        self.0 = None;
        Ok(result?)
    }
}

#[cfg(test)]
mod tests;
