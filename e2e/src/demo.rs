//! The main job, end to end: three very different machines, the shipped chart, one pod per node, and who got what.

use anyhow::Result;
use comfy_table::Table;
use topology::machine::Machine;
use topology::policy::ResourcePolicy;
use topology::{render, report};

use crate::cluster::Cluster;
use crate::scenario::{self, Granted, Pair};
use crate::{machines, paths, progress};

/// Machine, and how many pairs the pod on it asks for.
const NODES: &[(&str, usize)] = &[
    ("nvidia-dgx-a100", 8),
    ("azure-ndv5-h100", 4),
    ("nvidia-dgx2-v100", 16),
];

/// Runs the demo; the cluster ends with it.
pub fn run() -> Result<()> {
    let mut cluster = Cluster::start("demo")?;
    for (machine, _) in NODES {
        cluster.add_node(Some(machine), |_| ())?;
    }
    cluster.wait_for_nodes()?;
    progress::step("helm install gpu-rdma", || {
        scenario::install_chart(&cluster, &[])
    })?;
    progress::step("kubectl apply -f crds/examples/enforce.yaml", || {
        enforce(&cluster)
    })?;
    progress::step("pairs are advertised", || advertised(&cluster))?;
    progress::step("one pod per node gets its pairs", || pods(&cluster))?;
    progress::step("the cluster is Ready", || ready(&cluster))?;
    println!("{}", cluster.kubectl(["get", "grc,grn"])?);
    println!("{}", who_got_what(&cluster)?);
    pictures()
}

/// The shipped example, on nodes with the label that it selects.
fn enforce(cluster: &Cluster) -> Result<()> {
    cluster.kubectl(["label", "nodes", "--all", "example.com/pool=gpu"])?;
    let example = paths::repository()
        .canonicalize()?
        .join("crds/examples/enforce.yaml");
    let example = example.display().to_string();
    cluster.kubectl(["apply", "-f", &example]).map(drop)
}

fn advertised(cluster: &Cluster) -> Result<()> {
    NODES
        .iter()
        .enumerate()
        .try_for_each(|(index, (machine, _))| {
            let node = format!("node-{index}");
            let pairs = discovery(&machines::load(machine)?.seen(&node)?)
                .pairs
                .len();
            scenario::wait_allocatable(cluster, &node, scenario::RESOURCE, pairs)
        })
}

/// What the machine file says, by the same rules that the agent follows on the node.
fn discovery(machine: &Machine) -> report::Discovery {
    report::discovery(machine, &machine.paths(), &ResourcePolicy::default())
}

fn pods(cluster: &Cluster) -> Result<()> {
    NODES
        .iter()
        .enumerate()
        .try_for_each(|(index, (_, pairs))| {
            let node = format!("node-{index}");
            scenario::run_pod(
                cluster,
                &scenario::pod(&format!("rank-{index}"), Some(&node), *pairs),
            )
        })
}

fn ready(cluster: &Cluster) -> Result<()> {
    let path = "{.status.conditions[?(@.type==\"Ready\")].status}";
    scenario::wait_value(cluster, &["grc", "gpu-nodes"], path, 60, |status| {
        status == "True"
    })
    .map(drop)
}

fn who_got_what(cluster: &Cluster) -> Result<Table> {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(["pod", "node", "machine", "GPU", "NIC", "distance"]);
    for (index, (machine, _)) in NODES.iter().enumerate() {
        let pod = format!("rank-{index}");
        let Granted { pairs, .. } = scenario::granted(cluster, &pod)?;
        let mut rows: Vec<_> = pairs.into_values().collect();
        rows.sort_by_key(|pair| pair.gpu.trim_start_matches("GPU").parse::<usize>().ok());
        for Pair {
            gpu,
            nics,
            distance,
        } in rows
        {
            table.add_row([
                pod.clone(),
                format!("node-{index}"),
                (*machine).to_owned(),
                gpu,
                nics.join(" "),
                distance,
            ]);
        }
    }
    Ok(table)
}

fn pictures() -> Result<()> {
    for (index, (name, _)) in NODES.iter().enumerate() {
        let machine = machines::load(name)?.seen(&format!("node-{index}"))?;
        let svg = render::svg(&machine, &machine.paths(), &discovery(&machine));
        let file = paths::out()?.join(format!("{name}.svg"));
        std::fs::write(&file, svg)?;
        println!("picture: {}", file.canonicalize()?.display());
    }
    Ok(())
}
