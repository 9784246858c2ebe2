//! What the figures of the product are to be, and whether they are. Pure.

use serde::Serialize;

use super::discovery::Discovery;
use super::opened::Reads;
use super::plugin::{Figures, OnMachine};
use super::report::slowest;
use super::shape::Shape;
use super::soak::Soak;
use super::stats::Summary;

/// Bytes of a megabyte.
const MB: f64 = 1e6;
/// KiB that a process may have of its own at the end of the soak more than after a tenth of it.
const GROWTH: f64 = 256.0;
/// What counts as the same: two runs of one binary differ by so much.
const SAME: f64 = 1.2;

/// A figure that has a limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// What is measured.
    pub what: String,
    /// What it is here.
    pub here: f64,
    /// What it may be at most.
    pub limit: f64,
}

impl Goal {
    fn new(what: &str, here: f64, limit: f64) -> Self {
        let what = what.to_owned();
        Self { what, here, limit }
    }

    /// Whether it is.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.here <= self.limit
    }
}

/// All goals that these measurements tell something about.
#[must_use]
pub fn goals(
    machines: &[OnMachine],
    binary_bytes: Option<u64>,
    soak: Option<&Soak>,
    discovery: &[Discovery],
) -> Vec<Goal> {
    let binary = binary_bytes.map(|bytes| Goal::new("program, MB", as_number(bytes) / MB, 8.0));
    let mut goals: Vec<Goal> = binary.into_iter().collect();
    let of = |gpus, functions| {
        let wanted = |on: &&OnMachine| on.shape == Shape::new(gpus, functions);
        machines
            .iter()
            .find(wanted)
            .and_then(|on| on.figures.first().zip(on.figures.get(1)))
    };
    if let Some((product, floor)) = of(8, 8) {
        goals.extend(small(product, floor));
    }
    let sixteen = machines.iter().filter(|on| on.shape.gpus == 16);
    let preferred = sixteen.filter_map(|on| Some(slowest(&on.figures.first()?.preferred)?.p50));
    let preferred = preferred.max_by(f64::total_cmp);
    goals.extend(
        preferred.map(|p50| Goal::new("preferred of 16 pairs, slowest size, p50 ms", p50, 0.1)),
    );
    if let Some((product, _)) = of(8, 968) {
        goals.extend(large(product, of(8, 8).map(|(product, _)| product)));
    }
    goals.extend(soak.map(|soak| {
        Goal::new(
            "growth over the soak, KiB",
            as_difference(soak.growth()),
            GROWTH,
        )
    }));
    goals.extend(discovery.iter().flat_map(discovered));
    goals
}

fn small(product: &Figures, floor: &Figures) -> Vec<Goal> {
    let rss = product.idle.rss.max(product.after_calls.rss);
    let mut goals = vec![Goal::new("RSS, MB", as_number(rss) * 1024.0 / MB, 8.0)];
    goals.extend(
        product
            .exec_to_register
            .map(|time| Goal::new("exec → Register, p50 ms", time.p50, 10.0)),
    );
    let start = over(
        product.exec_to_register,
        floor.exec_to_register,
        product.reads_at_start.as_ref(),
    );
    goals.extend(start.map(|times| Goal::new("exec → Register / floor", times, 2.0)));
    let sizes = product.allocate.iter().zip(&floor.allocate);
    let times = sizes
        .filter_map(|(own, floor)| over(own.time, floor.time, product.reads_at_allocate.as_ref()));
    goals.extend(
        times
            .max_by(f64::total_cmp)
            .map(|times| Goal::new("Allocate / floor, worst size, p50", times, 1.3)),
    );
    let p99 = product
        .allocate
        .iter()
        .filter_map(|calls| Some(calls.time?.p99));
    goals.extend(
        p99.max_by(f64::total_cmp)
            .map(|p99| Goal::new("Allocate, worst size, p99 ms", p99, 0.2)),
    );
    goals.extend(
        product
            .register_again
            .map(|time| Goal::new("kubelet.sock → Register, p50 ms", time.p50, 3.0)),
    );
    goals
}

fn large(product: &Figures, small: Option<&Figures>) -> Vec<Goal> {
    let register = product.exec_to_register;
    let mut goals = Vec::new();
    goals.extend(
        register.map(|time| Goal::new("968 functions: exec → Register, p50 ms", time.p50, 100.0)),
    );
    let same = small.and_then(|small| over(first(product), first(small), None));
    goals.extend(
        same.map(|times| Goal::new("968 functions: Allocate / Allocate at 8", times, SAME)),
    );
    goals
}

fn discovered(one: &Discovery) -> Vec<Goal> {
    let times = over(one.facts, one.reads, None);
    let times =
        times.map(|times| Goal::new(&format!("facts / bare reads, {}", one.machine), times, 3.0));
    let facts = one
        .facts
        .filter(|_| one.machine == super::discovery::OF_FIELD);
    let facts = facts.map(|time| Goal::new("facts, 8 GPUs, p50 ms", time.p50, 50.0));
    facts.into_iter().chain(times).collect()
}

fn first(figures: &Figures) -> Option<Summary> {
    figures.allocate.first().and_then(|calls| calls.time)
}

/// How many times as long as the floor: the empty service, and bare reads of the same files.
fn over(own: Option<Summary>, empty: Option<Summary>, reads: Option<&Reads>) -> Option<f64> {
    let reads = reads
        .and_then(|reads| reads.time)
        .map_or(0.0, |time| time.p50);
    Some(own?.p50 / (empty?.p50 + reads))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and counts far below 2^52"
)]
fn as_number(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "differences far below 2^52")]
fn as_difference(count: i64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
