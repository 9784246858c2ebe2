//! Allocate and `GetPreferredAllocation` of every number of devices, of every contestant in turns.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use device_plugin::proto::{
    AllocateRequest, ContainerAllocateRequest, ContainerPreferredAllocationRequest,
    PreferredAllocationRequest,
};
use serde::Serialize;

use super::plugin::Serving;
use super::stats::{Samples, Summary};
use crate::kubelet::Api;

/// Calls of each kind and number of devices.
const CALLS: usize = 2000;
/// Calls that are not counted.
const WARM_UP: usize = 100;
/// Calls of one contestant before it is the next one's turn.
const TURN: usize = 100;
/// Largest number of devices that is asked for.
pub(super) const MOST: usize = 16;
/// After so much time a contestant is not asked for the same number again.
const BUDGET: Duration = Duration::from_secs(5);

/// Which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Allocate.
    Allocate,
    /// `GetPreferredAllocation`, all devices being available.
    Preferred,
}

/// Calls with one number of devices.
#[derive(Clone, Debug, Serialize)]
pub struct OfSize {
    /// Number of devices.
    pub size: usize,
    /// Their times; nothing where the call failed.
    pub time: Option<Summary>,
}

/// One contestant's part.
struct Turns<'a> {
    serving: &'a mut Serving,
    ids: Vec<String>,
    times: Samples,
    spent: Duration,
    failed: bool,
}

/// Measures one kind of call; the floor, which lists nothing, is asked what the first contestant is asked.
pub(super) async fn measure(call: Call, serving: &mut [Serving]) -> Result<Vec<Vec<OfSize>>> {
    let first = serving.first().map(Serving::ids).unwrap_or_default();
    let ids = |one: &Serving| {
        Some(one.ids())
            .filter(|ids| !ids.is_empty())
            .unwrap_or_else(|| first.clone())
    };
    let ids: Vec<Vec<String>> = serving.iter().map(ids).collect();
    let mut results = vec![Vec::new(); serving.len()];
    for size in 1..=MOST {
        let turns = serving.iter_mut().zip(&ids).map(|(serving, ids)| Turns {
            failed: ids.len() < size
                || (call == Call::Preferred
                    && !serving.plugin.options.get_preferred_allocation_available),
            serving,
            ids: ids.clone(),
            times: Samples::default(),
            spent: Duration::ZERO,
        });
        let mut turns: Vec<Turns<'_>> = turns.collect();
        for round in 0..CALLS / TURN {
            for turn in &mut turns {
                turn.take(call, size, round).await?;
            }
        }
        for (turn, results) in turns.iter().zip(&mut results) {
            if turn.ids.len() >= size {
                results.push(OfSize {
                    size,
                    time: turn.times.summary(),
                });
            }
        }
    }
    Ok(results)
}

impl Turns<'_> {
    async fn take(&mut self, call: Call, size: usize, round: usize) -> Result<()> {
        if round == 0 {
            self.calls(call, size, WARM_UP).await?;
            self.times = Samples::default();
        }
        self.calls(call, size, TURN).await
    }

    async fn calls(&mut self, call: Call, size: usize, count: usize) -> Result<()> {
        for number in 0..count {
            if self.failed || self.spent > BUDGET {
                break;
            }
            let api = &mut self.serving.plugin.api;
            let took = match call {
                Call::Allocate => Some(allocate(api, window(&self.ids, number, size)).await?),
                // Some peers die of it.
                Call::Preferred => prefer(api, self.ids.clone(), size).await.ok(),
            };
            let Some(took) = took else {
                (self.failed, self.times) = (true, Samples::default());
                break;
            };
            self.spent += took;
            self.times.push(took);
        }
        Ok(())
    }
}

/// So many ids, beginning with another one each time.
pub(super) fn window(ids: &[String], from: usize, size: usize) -> Vec<String> {
    let (from, count) = (from % ids.len().max(1), size.min(ids.len()));
    ids.iter().cycle().skip(from).take(count).cloned().collect()
}

/// One Allocate, and how long it took.
pub(super) async fn allocate(api: &mut Api, device_ids: Vec<String>) -> Result<Duration> {
    let request = AllocateRequest {
        container_requests: vec![ContainerAllocateRequest { device_ids }],
    };
    let begun = Instant::now();
    api.allocate(request).await.context("Allocate")?;
    Ok(begun.elapsed())
}

async fn prefer(api: &mut Api, available: Vec<String>, size: usize) -> Result<Duration> {
    let container = ContainerPreferredAllocationRequest {
        available_device_ids: available,
        must_include_device_ids: Vec::new(),
        allocation_size: i32::try_from(size)?,
    };
    let request = PreferredAllocationRequest {
        container_requests: vec![container],
    };
    let begun = Instant::now();
    api.get_preferred_allocation(request)
        .await
        .context("GetPreferredAllocation")?;
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests;
