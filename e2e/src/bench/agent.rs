//! The agent at rest: on a local Kubernetes where nothing happens, its memory, its processor time and what it writes to the
//! API.

use std::time::Duration;

use anyhow::{Context, Result};

use super::contestant::kib;
use super::report::{Row, mib, row};
use crate::cluster::Cluster;
use crate::{progress, scenario};

const MACHINE: &str = "nvidia-dgx-a100";
/// How long the agent is left alone before it is looked at, and how long it is looked at, in seconds. A kubelet proves nothing
/// in its first minute, and the agent takes turns meanwhile.
const SETTLE: u64 = 120;
const WATCH: u64 = 180;

/// Rows of the table.
///
/// # Errors
/// When the cluster does not do its part.
pub fn steady_state(mut cluster: Cluster) -> Result<Vec<Row>> {
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
    let kib =
        |field| kib(&status, field).with_context(|| format!("/proc/PID/status has no {field}"));
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

fn of_agent(cluster: &Cluster, node: &str, file: &str) -> Result<String> {
    let script = format!("cat /proc/$(pgrep -o -x node-agent)/{file}");
    cluster.on_node(node, ["sh", "-c", &script])
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
