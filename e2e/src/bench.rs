//! Figures of the product as it is shipped (release build), each beside what it is to be held against, in one run.
//!
//! * `plugin`: any device plugin on machines of several sizes against a service that does nothing, see [`plugin`].
//! * `discovery`: `node-agent facts` against bare reads of the same files, see [`discovery`].
//! * `agent`: the agent at rest on a local Kubernetes, see [`agent`].
//!
//! The first two need neither root nor a cluster.

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::cluster::Cluster;
use crate::product::{self, Profile};
use crate::{paths, progress};
use contestant::{Contestant, Places};
use plugin::OnMachine;
use report::Measured;
use shape::{PAIRS, SHAPES, Shape};
use soak::Soak;

pub mod agent;
pub mod calls;
pub mod contestant;
pub mod discovery;
pub mod goals;
pub mod opened;
pub mod plugin;
pub mod report;
pub mod shape;
pub mod soak;
pub mod stats;

/// The product's name among the contestants.
const PLUGIN: &str = "device-plugin";
/// That of the service that does nothing.
const FLOOR: &str = "floor";

/// What the command line says at the end of its help.
pub const EXAMPLES: &str = "\
Examples:
  make bench
  make bench BENCH='--only plugin --machine 8x8 --soak none'
  make bench BENCH=\"--only plugin --plugin 'other=/opt/other.sh {dir} {root}'\"

--plugin takes NAME=PROGRAM and its arguments, split at white space. {dir} stands for the kubelet's device-plugins directory,
{root} for the folder with the simulated machine's sys and proc, {node-file} for the agent's file. What a program takes in
another way, a script can give it.";

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Measure this part only
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Measure another device plugin too
    #[arg(long, value_name = "NAME=PROGRAM …")]
    plugin: Vec<Contestant>,
    /// Measure plugins on this machine only, as in 8x968: GPUs and RDMA functions
    #[arg(long, value_name = "SIZE")]
    machine: Vec<Shape>,
    /// How many Allocates and restarts the plugin's memory is watched over
    #[arg(long, value_enum, default_value = "full")]
    soak: soak::Length,
}

/// A part of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Device plugins
    Plugin,
    /// The agent's discovery
    Discovery,
    /// The agent at rest, on a local Kubernetes
    Agent,
}

impl Options {
    fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn machines(&self) -> &[Shape] {
        if self.machine.is_empty() {
            &SHAPES
        } else {
            &self.machine
        }
    }
}

/// Runs what was asked for, prints tables and writes `target/bench/plugin.json`.
pub fn run(options: &Options) -> Result<()> {
    if cfg!(debug_assertions) {
        bail!(
            "this build of the bench is slow and would measure itself: `make bench`, or cargo run --release"
        );
    }
    // First what builds the whole product: the parts that need less of it then find it built.
    let cluster = options
        .has(Part::Agent)
        .then(|| Cluster::start_release("bench"))
        .transpose()?;
    let work = paths::work("bench-plugin");
    let mut measured = Measured::of_this_machine()?;
    product::link_statically("e2e", "floor", Profile::Release)?;
    let mut binary = None;
    if options.has(Part::Plugin) {
        progress::step("build the device plugin", || {
            product::link_statically(PLUGIN, PLUGIN, Profile::Release)
        })?;
        let contestants = contestants(&options.plugin);
        binary = contestants
            .first()
            .map(Contestant::binary_bytes)
            .transpose()?;
        measured.binaries = sizes(&contestants)?;
        (measured.machines, measured.soak) = plugins(&contestants, options, &work)?;
    }
    if options.has(Part::Discovery) {
        if !options.has(Part::Agent) {
            product::programs(&product::list()?, Profile::Release)?;
        }
        let program = |name| product::binary(name, Profile::Release);
        measured.discovery = discovery::run(&program("node-agent"), &program(FLOOR), &work)?;
    }
    measured.goals = goals::goals(
        &measured.machines,
        binary,
        measured.soak.as_ref(),
        &measured.discovery,
    );
    print!("{}", report::render(&measured));
    let json = product::target().join("bench/plugin.json");
    report::write(&measured, &json)?;
    println!("\nall of it: {}", json.display());
    if let Some(cluster) = cluster {
        println!("\n{}", report::simple(agent::steady_state(cluster)?));
    }
    Ok(())
}

/// The product as it runs on a node, the service that does nothing, and the others.
fn contestants(others: &[Contestant]) -> Vec<Contestant> {
    let product = product::binary(PLUGIN, Profile::Release);
    let arguments = [
        "serve",
        "--root",
        "{root}",
        "--node-file",
        "{node-file}",
        "--boot-id-file",
        "{root}/proc/sys/kernel/random/boot_id",
        "--kubelet-dir",
        "{dir}",
    ];
    let product = Contestant::new(PLUGIN, &product, &arguments, PAIRS);
    let floor = product::binary(FLOOR, Profile::Release);
    let floor = Contestant::new(FLOOR, &floor, &["serve", "{dir}"], "bench/floor");
    [product, floor]
        .into_iter()
        .chain(others.iter().cloned())
        .collect()
}

fn sizes(contestants: &[Contestant]) -> Result<Vec<(String, u64)>> {
    let size = |one: &Contestant| Ok((one.name.clone(), one.binary_bytes()?));
    contestants.iter().map(size).collect()
}

fn plugins(
    contestants: &[Contestant],
    options: &Options,
    work: &Path,
) -> Result<(Vec<OnMachine>, Option<Soak>)> {
    // One thread: what the kubelet's side costs is the same for everybody, and no hand-over between threads is in it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut machines = Vec::new();
    for &shape in options.machines() {
        let measured = progress::step(&shape.title(), || {
            let node = shape.write(&work.join("node"))?;
            runtime.block_on(plugin::measure(contestants, &node, shape, work))
        });
        machines.push(measured?);
    }
    let soak = progress::step(
        "memory over many Allocates and restarts of the kubelet",
        || {
            let node = SHAPES[0].write(&work.join("node"))?;
            let places = Places {
                dir: work.join("k"),
                root: node.root,
                node_file: node.node_file,
            };
            let product = contestants.first().context("the product is measured")?;
            runtime.block_on(soak::run(product, &places, options.soak))
        },
    )?;
    Ok((machines, soak))
}
