//! Device plugins on one simulated node: each is started, asked and left by a kubelet, in turns with the others, so that
//! whatever else the machine does meets all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::calls::{self, Call, OfSize};
use super::contestant::{Contestant, Memory, Places, Running};
use super::opened::{self, Reads, Watched};
use super::shape::{Node, Shape};
use super::stats::{Samples, Summary};
use crate::kubelet::{Kubelet, List, Registered};

/// Longest wait for a registration or a list: one of the peers takes 22 s with 968 functions.
const LIMIT: Duration = Duration::from_mins(2);
/// Starts, and restarts of the kubelet.
const ROUNDS: usize = 30;
/// After so much time for one figure a contestant is not asked again, once it has [`ENOUGH`] samples.
const BUDGET: Duration = Duration::from_secs(30);
const ENOUGH: usize = 3;
/// How long a plugin is left alone before its memory is looked at.
const REST: Duration = Duration::from_secs(2);
/// How long there is no kubelet when it restarts.
const PAUSE: Duration = Duration::from_millis(50);
/// Registrations that may end before a list came.
const TRIES: usize = 5;
/// The files that one Allocate reads are those that each of so many reads: ports are looked at meanwhile.
const REPEATS: usize = 5;

/// What was measured of one contestant on one machine. Times are in milliseconds.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// Its name.
    pub name: String,
    /// The resource that was measured.
    pub resource: String,
    /// Devices in its list.
    pub devices: usize,
    /// From the start of the program to its Register call.
    pub exec_to_register: Option<Summary>,
    /// From dialling the plugin to its first list.
    pub dial_to_list: Option<Summary>,
    /// From a new `kubelet.sock` to the Register call.
    pub register_again: Option<Summary>,
    /// Memory before the first call.
    pub idle: Memory,
    /// Memory after all calls.
    pub after_calls: Memory,
    /// Allocate, by the number of devices.
    pub allocate: Vec<OfSize>,
    /// `GetPreferredAllocation` of so many of all devices.
    pub preferred: Vec<OfSize>,
    /// Bare reads of the files that it reads before it registers.
    pub reads_at_start: Option<Reads>,
    /// Bare reads of the files that it reads for one Allocate of as many devices as are asked for at most.
    pub reads_at_allocate: Option<Reads>,
}

/// All contestants on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct OnMachine {
    /// The machine.
    pub shape: Shape,
    /// The product first, then the floor, then the others.
    pub figures: Vec<Figures>,
}

/// A contestant on its node, registered.
pub(super) struct Serving {
    pub(super) running: Running,
    pub(super) plugin: Registered,
    pub(super) list: List,
    kubelet: Kubelet,
    resource: String,
    dir: PathBuf,
}

impl Serving {
    /// Starts a kubelet and then the contestant, below another program where one is given.
    pub(super) async fn start(
        contestant: &Contestant,
        places: &Places,
        watched: Option<&Watched>,
    ) -> Result<Self> {
        let _ = fs::remove_dir_all(&places.dir);
        fs::create_dir_all(&places.dir)
            .with_context(|| format!("create {}", places.dir.display()))?;
        let mut kubelet = Kubelet::start(&places.dir)?;
        let running = match watched {
            Some(watched) => contestant.start_below(watched.strace(), places)?,
            None => contestant.start(places)?,
        };
        let served = serve(&mut kubelet, contestant.resource.as_deref()).await;
        let (plugin, list) = served.with_context(|| contestant.name.clone())?;
        Ok(Self {
            running,
            kubelet,
            list,
            resource: plugin.request.resource_name.clone(),
            plugin,
            dir: places.dir.clone(),
        })
    }

    /// Restarts the kubelet; returns the time from its new socket to the Register call.
    pub(super) async fn restart(self, pause: Duration) -> Result<(Self, Duration)> {
        let Self {
            running,
            plugin,
            list,
            kubelet,
            resource,
            dir,
        } = self;
        drop((plugin, list, kubelet));
        tokio::time::sleep(pause).await;
        let mut kubelet = Kubelet::start(&dir)?;
        let (plugin, list) = serve(&mut kubelet, Some(&resource)).await?;
        let took = plugin.at - kubelet.started();
        Ok((
            Self {
                running,
                plugin,
                list,
                kubelet,
                resource,
                dir,
            },
            took,
        ))
    }

    /// The ids in its list.
    pub(super) fn ids(&self) -> Vec<String> {
        self.list
            .devices
            .iter()
            .map(|device| device.id.clone())
            .collect()
    }
}

/// The first registration that lasts until a list comes: a plugin may find that its socket or the kubelet's is another by
/// now, and registers again at once.
async fn serve(kubelet: &mut Kubelet, resource: Option<&str>) -> Result<(Registered, List)> {
    let mut tries = 0;
    loop {
        let mut plugin = kubelet.registered(resource, LIMIT).await?;
        match plugin.list(LIMIT).await {
            Ok(list) => return Ok((plugin, list)),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
    }
}

/// A contestant, and what is known of it so far.
struct Entry<'a> {
    contestant: &'a Contestant,
    places: Places,
    register: Samples,
    list: Samples,
    again: Samples,
    spent: Duration,
}

/// Measures all contestants on one machine; work files go below `work`.
pub async fn measure(
    contestants: &[Contestant],
    node: &Node,
    shape: Shape,
    work: &Path,
) -> Result<OnMachine> {
    let entry = |(number, contestant)| Entry {
        contestant,
        places: Places {
            // Short: the path of a socket has 107 bytes at most.
            dir: work.join(format!("k{number}")),
            root: node.root.clone(),
            node_file: node.node_file.clone(),
        },
        register: Samples::default(),
        list: Samples::default(),
        again: Samples::default(),
        spent: Duration::ZERO,
    };
    let mut entries: Vec<Entry<'_>> = contestants.iter().enumerate().map(entry).collect();
    starts(&mut entries).await?;
    let mut serving = Vec::new();
    for entry in &entries {
        serving.push(Serving::start(entry.contestant, &entry.places, None).await?);
    }
    tokio::time::sleep(REST).await;
    let idle = memories(&serving)?;
    let allocate = calls::measure(Call::Allocate, &mut serving).await?;
    let preferred = calls::measure(Call::Preferred, &mut serving).await?;
    let after = memories(&serving)?;
    let devices: Vec<usize> = serving.iter().map(|one| one.list.devices.len()).collect();
    let resources: Vec<String> = serving.iter().map(|one| one.resource.clone()).collect();
    restarts(&mut entries, serving).await?;
    let mut figures = Vec::new();
    let calls = allocate.into_iter().zip(preferred);
    for (at, (entry, (allocate, preferred))) in entries.into_iter().zip(calls).enumerate() {
        let (at_start, at_allocate) = reads(&entry, node).await?;
        figures.push(Figures {
            name: entry.contestant.name.clone(),
            resource: resources[at].clone(),
            devices: devices[at],
            exec_to_register: entry.register.summary(),
            dial_to_list: entry.list.summary(),
            register_again: entry.again.summary(),
            idle: idle[at],
            after_calls: after[at],
            allocate,
            preferred,
            reads_at_start: at_start,
            reads_at_allocate: at_allocate,
        });
    }
    Ok(OnMachine { shape, figures })
}

fn memories(serving: &[Serving]) -> Result<Vec<Memory>> {
    serving.iter().map(|one| one.running.memory()).collect()
}

impl Entry<'_> {
    /// Whether it has had its time for one figure.
    fn is_done(&self, samples: usize) -> bool {
        samples >= ROUNDS || (samples >= ENOUGH && self.spent > BUDGET)
    }
}

async fn starts(entries: &mut [Entry<'_>]) -> Result<()> {
    for _ in 0..ROUNDS {
        for entry in entries.iter_mut() {
            if entry.is_done(entry.register.len()) {
                continue;
            }
            let begun = Instant::now();
            let serving = Serving::start(entry.contestant, &entry.places, None).await?;
            let plugin = &serving.plugin;
            entry.register.push(plugin.at - serving.running.begun());
            entry.list.push(serving.list.at - plugin.dialled);
            entry.spent += begun.elapsed();
            serving.running.stop().await?;
        }
    }
    Ok(())
}

async fn restarts(entries: &mut [Entry<'_>], serving: Vec<Serving>) -> Result<()> {
    let mut serving: Vec<Option<Serving>> = serving.into_iter().map(Some).collect();
    for entry in entries.iter_mut() {
        entry.spent = Duration::ZERO;
    }
    for _ in 0..ROUNDS {
        for (entry, place) in entries.iter_mut().zip(&mut serving) {
            if entry.is_done(entry.again.len()) {
                continue;
            }
            let begun = Instant::now();
            let one = place.take().context("it serves")?;
            let (one, took) = one
                .restart(PAUSE)
                .await
                .with_context(|| entry.contestant.name.clone())?;
            entry.again.push(took);
            entry.spent += begun.elapsed();
            *place = Some(one);
        }
    }
    for one in serving.into_iter().flatten() {
        one.running.stop().await?;
    }
    Ok(())
}

/// Bare reads of what it reads before it registers, and for one Allocate; nothing where it reads nothing of the node.
async fn reads(entry: &Entry<'_>, node: &Node) -> Result<(Option<Reads>, Option<Reads>)> {
    let below = node.root.parent().context("a node has a folder")?;
    let watched = Watched::new(below)?;
    let mut serving = Serving::start(entry.contestant, &entry.places, Some(&watched)).await?;
    let at_start = watched.between(0, watched.mark()?)?;
    let ids: Vec<String> = serving.ids().into_iter().take(calls::MOST).collect();
    let mut at_allocate: Option<BTreeSet<PathBuf>> = None;
    for _ in 0..REPEATS {
        let from = watched.mark()?;
        calls::allocate(&mut serving.plugin.api, ids.clone()).await?;
        let seen = watched.between(from, watched.mark()?)?;
        at_allocate = Some(match at_allocate {
            Some(before) => before.intersection(&seen).cloned().collect(),
            None => seen,
        });
    }
    serving.running.stop().await?;
    let of = |files: BTreeSet<PathBuf>| {
        (!files.is_empty())
            .then(|| opened::reads(&files))
            .transpose()
    };
    Ok((of(at_start)?, of(at_allocate.unwrap_or_default())?))
}
