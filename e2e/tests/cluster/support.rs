//! The cluster that the scenarios share, and what they ask of it.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use e2e::cluster::Cluster;
use e2e::{machines, scenario};
use serde_json::{Value, json};
use topology::policy::ResourcePolicy;
use topology::report;

/// Bare metal, eight pairs behind nested switches.
pub(crate) const DGX_A100: (&str, &str) = ("node-0", "nvidia-dgx-a100");
/// A virtual machine with a cloud's topology file and two NUMA nodes; `single-numa-node`.
pub(crate) const AZURE: (&str, &str) = ("node-1", "azure-ndv5-h100");
/// Sixteen GPUs for eight NICs.
pub(crate) const DGX_2: (&str, &str) = ("node-2", "nvidia-dgx2-v100");

/// Every node.
pub(crate) const NODES: [(&str, &str); 3] = [DGX_A100, AZURE, DGX_2];

static CLUSTER: LazyLock<Mutex<Cluster>> =
    LazyLock::new(|| Mutex::new(start().unwrap_or_else(|error| panic!("{error:#}"))));

fn start() -> anyhow::Result<Cluster> {
    let mut cluster = Cluster::start("scenarios")?;
    cluster.add_node(Some(DGX_A100.1), |_| ())?;
    cluster.add_node(Some(AZURE.1), |spec| {
        spec.two_numa_nodes = true;
        "single-numa-node".clone_into(&mut spec.topology_policy);
    })?;
    cluster.add_node(Some(DGX_2.1), |_| ())?;
    cluster.wait_for_nodes()?;
    scenario::install_chart(&cluster, &[])?;
    enforce(&cluster, &json!({}))?;
    Ok(cluster)
}

/// The cluster, for one scenario at a time, with all pairs advertised.
pub(crate) fn cluster() -> MutexGuard<'static, Cluster> {
    let cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    wait_all_advertised(&cluster);
    cluster
}

/// Waits until every node has all its pairs.
pub(crate) fn wait_all_advertised(cluster: &Cluster) {
    for (node, machine) in NODES {
        let pairs = expected(machine).len();
        scenario::wait_allocatable(cluster, node, scenario::RESOURCE, pairs).unwrap();
    }
}

/// Applies the shared `GpuRdmaCluster` in Enforce with more fields set.
pub(crate) fn enforce(cluster: &Cluster, more: &Value) -> anyhow::Result<()> {
    let mut spec = json!({"mode": "Enforce"});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    scenario::apply(cluster, &scenario::gpu_rdma_cluster("all", &spec)).map(drop)
}

/// Pairs that a machine file says, by GPU name: NICs and distance.
pub(crate) fn expected(machine: &str) -> BTreeMap<String, Vec<String>> {
    let seen = machines::load(machine).unwrap().seen("any").unwrap();
    let discovery = report::discovery(&seen, &seen.paths(), &ResourcePolicy::default());
    discovery
        .pairs
        .into_iter()
        .map(|pair| (pair.gpu, pair.nics))
        .collect()
}

/// Nodes with our taint now.
pub(crate) fn tainted(cluster: &Cluster) -> Vec<String> {
    let path = "{range .items[*]}{.metadata.name}{\"=\"}{.spec.taints[*].key}{\"\\n\"}{end}";
    let listing = scenario::value(cluster, &["nodes"], path).unwrap();
    let ours = listing
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(_, keys)| keys.contains("gpurdma.dev/maintenance"));
    ours.map(|(name, _)| name.to_owned()).collect()
}

/// No kernel of a simulated machine can say who uses RDMA: the machine carries the answer that nobody does.
pub(crate) fn record_no_users(cluster: &Cluster, node: &str) {
    let write = "mkdir -p /run/gpurdma-recorded && for of in qp cm-id; do echo '[]' >/run/gpurdma-recorded/rdma-$of.json; done";
    cluster.on_node(node, ["sh", "-c", write]).unwrap();
}

/// Deletes a `GpuRdmaCluster` when the scenario ends, also when it fails.
pub(crate) struct Other<'a>(&'a Cluster, &'static str);

impl<'a> Other<'a> {
    /// Applies it beside the one that all scenarios share.
    pub(crate) fn apply(cluster: &'a Cluster, name: &'static str, spec: &Value) -> Self {
        scenario::apply(cluster, &scenario::gpu_rdma_cluster(name, spec)).unwrap();
        Self(cluster, name)
    }
}

impl Drop for Other<'_> {
    fn drop(&mut self) {
        let delete = ["delete", "gpurdmacluster", self.1, "--timeout=60s"];
        if let Err(error) = self.0.kubectl(delete) {
            eprintln!("{error:#}");
        }
    }
}

/// Deletes its pods when it ends, also when the scenario fails.
pub(crate) struct Pods<'a> {
    cluster: &'a Cluster,
    names: Vec<String>,
}

impl<'a> Pods<'a> {
    /// No pods yet.
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            names: Vec::new(),
        }
    }

    /// Starts a pod on a node and waits until it runs.
    pub(crate) fn run(&mut self, name: &str, node: &str, pairs: usize) {
        self.names.push(name.to_owned());
        scenario::run_pod(self.cluster, &scenario::pod(name, Some(node), pairs)).unwrap();
    }

    /// Starts a pod as it is described and waits until it runs.
    pub(crate) fn run_as(&mut self, pod: &Value) {
        self.names
            .push(pod["metadata"]["name"].as_str().unwrap().to_owned());
        scenario::run_pod(self.cluster, pod).unwrap();
    }

    /// Creates a pod without waiting.
    pub(crate) fn create(&mut self, name: &str, node: &str, pairs: usize) {
        self.apply(&scenario::pod(name, Some(node), pairs));
    }

    /// Creates this pod without waiting.
    pub(crate) fn apply(&mut self, pod: &Value) {
        let name = pod["metadata"]["name"].as_str().unwrap();
        self.names.push(name.to_owned());
        scenario::apply(self.cluster, pod).unwrap();
    }
}

impl Drop for Pods<'_> {
    fn drop(&mut self) {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        if let Err(error) = scenario::delete_pods(self.cluster, &names) {
            eprintln!("{error:#}");
        }
    }
}
