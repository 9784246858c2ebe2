//! Figures of the node agent as it is shipped (release build), each beside what it is to be held against, in one run.
//!
//! * facts: `node-agent facts` of an 8-GPU machine against bare reads of the same files, whole programs both, in turns.
//! * steady state: an agent on a local Kubernetes where nothing happens: memory, processor time, and what it writes to
//!   the API.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

use crate::cluster::Cluster;
use crate::product::{self, Profile};
use crate::{cmd, machines, packages, paths, progress, scenario};

const MACHINE: &str = "nvidia-dgx-a100";
/// Pairs of each measurement of the facts.
const ROUNDS: usize = 41;
/// How long the agent is left alone before it is looked at, and how long it is looked at, in seconds. A kubelet proves nothing
/// in its first minute, and the agent takes turns meanwhile.
const SETTLE: u64 = 120;
const WATCH: u64 = 180;

/// Runs all of it and prints a table.
///
/// # Errors
/// When something cannot be built or started.
pub fn run() -> Result<()> {
    let cluster = Cluster::start_release("bench")?;
    let mut rows = progress::step("facts against bare reads", facts)?;
    rows.extend(steady_state(cluster)?);
    let mut table = Table::new();
    table
        .load_style(ASCII_MARKDOWN)
        .set_header(["figure", "here", "goal"]);
    for row in rows {
        table.add_row(row);
    }
    println!("{table}");
    Ok(())
}

type Row = [String; 3];

fn row(figure: &str, here: String, goal: &str) -> Row {
    [figure.to_owned(), here, goal.to_owned()]
}

fn facts() -> Result<Vec<Row>> {
    packages::ensure_all(&[("/usr/bin/strace", "strace")])?;
    let work = paths::work("bench-facts");
    let (tree, list) = (work.join("tree"), work.join("files"));
    let _ = std::fs::remove_dir_all(&work);
    machines::load(MACHINE)?.write("bench", &tree)?;
    let agent = product::binary("node-agent", Profile::Release);
    let files = files_read(&agent, &tree, &work.join("strace"))?;
    std::fs::write(&list, files.join("\n")).context("write the list of files")?;
    let own = product::own_binary()?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(&mut facts_command(&agent, &tree))?);
        bare.push(time(Command::new(&own).arg("read-files").arg(&list))?);
    }
    let (ours, bare) = (median(ours), median(bare));
    let milliseconds = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let times = ours.as_secs_f64() / bare.as_secs_f64();
    Ok(vec![
        row(
            &format!("facts of an 8-GPU machine, median of {ROUNDS}"),
            milliseconds(ours),
            "< 50 ms",
        ),
        row(
            &format!("bare reads of the same {} files and folders", files.len()),
            milliseconds(bare),
            "",
        ),
        row("facts / bare reads", format!("{times:.2}"), "< 3"),
    ])
}

fn facts_command(agent: &Path, tree: &Path) -> Command {
    let mut command = Command::new(agent);
    add_facts(&mut command, tree);
    command
}

/// The agent's arguments.
fn add_facts(command: &mut Command, tree: &Path) {
    command
        .arg("--root")
        .arg(tree)
        .args(["facts", "--output", "json"]);
}

/// Files and folders below the tree that the agent opened, as the kernel resolved them: with `-y`, strace(1) shows each
/// descriptor with its path. What was opened only to be named (`O_PATH`) was not read.
fn files_read(agent: &Path, tree: &Path, log: &Path) -> Result<Vec<String>> {
    let mut command = cmd::command(
        "strace",
        ["-f", "-qq", "-y", "-e", "trace=open,openat,openat2", "-o"],
    );
    add_facts(command.arg(log).arg(agent), tree);
    cmd::run(&mut command)?;
    let text = std::fs::read_to_string(log).context("read what strace saw")?;
    let read = text.lines().filter(|line| !line.contains("O_PATH"));
    let opened = read.filter_map(|line| {
        let (_, path) = line.rsplit_once(" = ")?.1.split_once('<')?;
        path.strip_suffix('>').map(str::to_owned)
    });
    let tree = format!("{}/", tree.display());
    let files: BTreeSet<String> = opened.filter(|path| path.starts_with(&tree)).collect();
    Ok(files.into_iter().collect())
}

/// Reads every file and lists every folder of a list: what [`run`] holds the agent against.
///
/// # Errors
/// When one of them cannot be read.
pub fn read_files(list: &Path) -> Result<()> {
    let text = std::fs::read_to_string(list).context("read the list")?;
    let mut bytes = 0;
    for path in text.lines().map(Path::new) {
        bytes += if path.is_dir() {
            std::fs::read_dir(path)?.count()
        } else {
            std::fs::read(path)?.len()
        };
    }
    println!("{bytes}");
    Ok(())
}

fn time(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    cmd::run(command)?;
    Ok(begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn steady_state(mut cluster: Cluster) -> Result<Vec<Row>> {
    let node = cluster.add_node(Some(MACHINE), |_| ())?;
    cluster.wait_for_nodes()?;
    scenario::install_chart(&cluster, &[])?;
    let spec = serde_json::json!({"mode": "Enforce"});
    scenario::apply(&cluster, &scenario::gpu_rdma_cluster("all", &spec))?;
    scenario::wait_allocatable(&cluster, &node, scenario::RESOURCE, 8)?;
    std::thread::sleep(Duration::from_secs(SETTLE));
    let before = (used(&cluster, &node)?, writes(&cluster)?);
    let what = format!("watch the agent for {WATCH} s");
    progress::step(&what, || {
        std::thread::sleep(Duration::from_secs(WATCH));
        Ok(())
    })?;
    let after = (used(&cluster, &node)?, writes(&cluster)?);
    let core = (after.0 - before.0) / f64::from(u32::try_from(WATCH)?) * 100.0;
    let status = of_agent(&cluster, &node, "status")?;
    let kib = |field| memory(&status, field);
    Ok(vec![
        row("agent's memory, RSS", mib(kib("VmRSS:")?), "< 12 MiB"),
        row(
            "of it its own (not pages of its file)",
            mib(kib("RssAnon:")?),
            "",
        ),
        row("agent's memory, highest", mib(kib("VmHWM:")?), ""),
        row(
            "agent's processor time, steady",
            format!("{core:.3} % of a core"),
            "< 0.1 %",
        ),
        row(
            "writes to gpurdma.dev objects, steady",
            (after.1 - before.1).to_string(),
            "0",
        ),
    ])
}

fn mib(kib: u64) -> String {
    format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024)
}

fn of_agent(cluster: &Cluster, node: &str, file: &str) -> Result<String> {
    let script = format!("cat /proc/$(pgrep -o -x node-agent)/{file}");
    cluster.on_node(node, ["sh", "-c", &script])
}

/// A line of `/proc/PID/status` in KiB.
fn memory(status: &str, field: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    let number = number.with_context(|| format!("/proc/PID/status has no {field}"))?;
    number.parse().context("understand /proc/PID/status")
}

/// Seconds that the agent and the programs it waited for have used: fields 14 to 17 of `/proc/PID/stat`, in ticks of
/// 1/100 s (`USER_HZ`).
fn used(cluster: &Cluster, node: &str) -> Result<f64> {
    let text = of_agent(cluster, node, "stat")?;
    let (_, rest) = text.rsplit_once(')').context("understand /proc/PID/stat")?;
    let ticks = rest.split_whitespace().skip(11).take(4);
    let ticks: f64 = ticks.filter_map(|tick| tick.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}

/// Requests that changed objects of our group, as the API server counts them.
fn writes(cluster: &Cluster) -> Result<u64> {
    let metrics = cluster.kubectl(["get", "--raw", "/metrics"])?;
    let ours = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && line.contains("group=\"gpurdma.dev\"")
            && ["APPLY", "PATCH", "PUT", "POST", "DELETE"]
                .iter()
                .any(|verb| line.contains(&format!("verb=\"{verb}\"")))
    };
    let count = |line: &str| line.rsplit_once(' ')?.1.parse::<f64>().ok();
    let total: f64 = metrics.lines().filter(ours).filter_map(count).sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of requests"
    )]
    Ok(total as u64)
}
