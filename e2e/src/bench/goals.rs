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
    let worst = |values: &mut dyn Iterator<Item = f64>| values.max_by(f64::total_cmp);
    let allocates = || product.allocate.iter();
    let start = over(
        product.exec_to_register,
        floor.exec_to_register,
        reads_p50(product.reads_at_start.as_ref()),
    );
    let times =
        worst(&mut allocates().filter_map(|calls| allocate_over(product, floor, calls.size)));
    let p99 = worst(&mut allocates().filter_map(|calls| Some(calls.time?.p99)));
    let rows = [
        ("RSS, MB", Some(as_number(rss) * 1024.0 / MB), 8.0),
        (
            "exec → Register, p50 ms",
            product.exec_to_register.map(|time| time.p50),
            10.0,
        ),
        ("exec → Register / floor", start, 2.0),
        ("Allocate / floor, worst size, p50", times, 1.3),
        ("Allocate, worst size, p99 ms", p99, 0.2),
        (
            "kubelet.sock → Register, p50 ms",
            product.register_again.map(|time| time.p50),
            3.0,
        ),
    ];
    measured(rows)
}

fn large(product: &Figures, small: Option<&Figures>) -> Vec<Goal> {
    let first = |figures: &Figures| figures.allocate.first().and_then(|calls| calls.time);
    let register = product.exec_to_register.map(|time| time.p50);
    let same = small.and_then(|small| over(first(product), first(small), 0.0));
    measured([
        ("968 functions: exec → Register, p50 ms", register, 100.0),
        ("968 functions: Allocate / Allocate at 8", same, SAME),
    ])
}

fn discovered(one: &Discovery) -> Vec<Goal> {
    let of_field = one.machine == super::discovery::OF_FIELD;
    let facts = one.facts.filter(|_| of_field).map(|time| time.p50);
    let times = format!("facts / bare reads, {}", one.machine);
    measured([
        ("facts, 8 GPUs, p50 ms", facts, 50.0),
        (&times, over(one.facts, one.reads, 0.0), 3.0),
    ])
}

/// Goals of what was measured.
fn measured<const N: usize>(rows: [(&str, Option<f64>, f64); N]) -> Vec<Goal> {
    let rows = rows.into_iter();
    rows.filter_map(|(what, here, limit)| Some(Goal::new(what, here?, limit)))
        .collect()
}

/// How many times as long as the floor: the empty service, and bare reads of the same files in milliseconds.
#[must_use]
pub fn over(own: Option<Summary>, empty: Option<Summary>, reads: f64) -> Option<f64> {
    Some(own?.p50 / (empty?.p50 + reads))
}

/// [`over`] for Allocates of so many devices; as many of the files belong to each.
#[must_use]
pub fn allocate_over(own: &Figures, floor: &Figures, size: usize) -> Option<f64> {
    let time = |figures: &Figures| {
        let calls = figures.allocate.iter().find(|calls| calls.size == size);
        calls.and_then(|calls| calls.time)
    };
    let most = own.allocate.last().map_or(1, |calls| calls.size);
    let part = as_number(u64::try_from(size).ok()?) / as_number(u64::try_from(most).ok()?);
    let reads = part * reads_p50(own.reads_at_allocate.as_ref());
    over(time(own), time(floor), reads)
}

/// Time of bare reads, in milliseconds; none where there is nothing to read.
#[must_use]
pub fn reads_p50(reads: Option<&Reads>) -> f64 {
    let time = reads.and_then(|reads| reads.time);
    time.map_or(0.0, |time| time.p50)
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
