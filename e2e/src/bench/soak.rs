//! Whether a plugin's memory grows over many Allocates and many restarts of its kubelet.

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use futures::{StreamExt, stream};
use serde::Serialize;

use super::calls;
use super::contestant::{Contestant, Memory, Places};
use super::plugin::Serving;

/// Allocates under way at the same time.
const AT_ONCE: usize = 16;
/// Memory is looked at so often.
const LOOKS: usize = 20;

/// How long it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Length {
    /// A million Allocates and ten thousand restarts of the kubelet.
    Full,
    /// A hundredth of it.
    Short,
    /// Not at all.
    None,
}

impl Length {
    /// Allocates and restarts.
    fn counts(self) -> Option<(usize, usize)> {
        match self {
            Self::Full => Some((1_000_000, 10_000)),
            Self::Short => Some((10_000, 100)),
            Self::None => None,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Soak {
    /// Number of Allocates.
    pub allocates: usize,
    /// Number of restarts of the kubelet.
    pub restarts: usize,
    /// Memory after so many percent.
    pub memory: Vec<(usize, Memory)>,
}

impl Soak {
    /// KiB of its own that the plugin has at the end more than after a tenth.
    #[must_use]
    pub fn growth(&self) -> i64 {
        let after = |part: usize| self.memory.iter().find(|(percent, _)| *percent >= part);
        let own = |part| after(part).map_or(0, |(_, memory)| memory.anon.cast_signed());
        own(100) - own(10)
    }
}

/// Runs it; says how far it is.
pub async fn run(contestant: &Contestant, places: &Places, length: Length) -> Result<Option<Soak>> {
    let Some((allocates, restarts)) = length.counts() else {
        return Ok(None);
    };
    let mut serving = Serving::start(contestant, places, None).await?;
    let mut memory = Vec::new();
    for look in 1..=LOOKS {
        allocate(&serving, allocates / LOOKS).await?;
        for _ in 0..restarts / LOOKS {
            (serving, _) = serving.restart(Duration::ZERO).await?;
        }
        let percent = look * 100 / LOOKS;
        let now = serving.running.memory()?;
        eprintln!(
            "    {percent:3} %: {} KiB, {} KiB of them its own",
            now.rss, now.anon
        );
        memory.push((percent, now));
    }
    serving.running.stop().await?;
    Ok(Some(Soak {
        allocates,
        restarts,
        memory,
    }))
}

async fn allocate(serving: &Serving, count: usize) -> Result<()> {
    let ids = serving.ids();
    let calls = stream::iter(0..count).map(|number| {
        let mut api = serving.plugin.api.clone();
        let ids = calls::window(&ids, number, 1 + number % ids.len().max(1));
        async move { calls::allocate(&mut api, ids).await }
    });
    let mut calls = calls.buffer_unordered(AT_ONCE);
    while let Some(answer) = calls.next().await {
        answer?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
