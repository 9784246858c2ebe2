//! Wakes whoever watches files of a directory: at each inotify event in it, and at least once per period.
//!
//! A pulse carries no news; its receiver looks for itself. So nothing is lost where inotify is not to be had (the
//! user's limit of instances is reached) or where the directory itself was replaced.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use inotify::{EventStream, Inotify, WatchMask};
use tokio::sync::watch;

use crate::identity::{FileId, identify};

/// Pulses of `dir`, until all receivers are dropped.
#[must_use]
pub fn pulse(dir: PathBuf, period: Duration) -> watch::Receiver<u64> {
    let (beat, pulses) = watch::channel(0_u64);
    tokio::spawn(async move {
        let mut eye = Eye::open(&dir);
        while !beat.is_closed() {
            tokio::select! {
                () = eye.event() => {}
                () = tokio::time::sleep(period) => eye.follow(&dir),
                () = beat.closed() => return,
            }
            beat.send_modify(|count| *count = count.wrapping_add(1));
        }
    });
    pulses
}

/// An inotify watch on a directory, or none where there cannot be one.
struct Eye {
    events: Option<EventStream<[u8; 4096]>>,
    watched: Option<FileId>,
}

impl Eye {
    fn open(dir: &Path) -> Self {
        let stream = Inotify::init().and_then(|inotify| inotify.into_event_stream([0; 4096]));
        if let Err(error) = &stream {
            tracing::warn!(dir = %dir.display(), %error, "inotify is not available; files are polled instead");
        }
        let mut eye = Self {
            events: stream.ok(),
            watched: None,
        };
        eye.follow(dir);
        eye
    }

    /// Watches the directory that is at the path now.
    fn follow(&mut self, dir: &Path) {
        let current = identify(dir).known().map(|id| id.place());
        if current == self.watched {
            return;
        }
        let mask = WatchMask::CREATE
            | WatchMask::DELETE
            | WatchMask::MOVE
            | WatchMask::CLOSE_WRITE
            | WatchMask::DELETE_SELF;
        let added = self
            .events
            .as_ref()
            .map(|events| events.watches().add(dir, mask));
        self.watched = matches!(added, Some(Ok(_))).then_some(current).flatten();
    }

    async fn event(&mut self) {
        let next = match &mut self.events {
            Some(events) => events.next().await,
            None => std::future::pending().await,
        };
        if !matches!(next, Some(Ok(_))) {
            self.events = None;
        }
    }
}

#[cfg(test)]
mod tests;
