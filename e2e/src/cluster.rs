//! A running cluster, as a test or a person uses it.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::node::NodeSpec;
use crate::product::Profile;
use crate::supervisor::{self, Request};
use crate::{cmd, packages, paths, product, progress, tools};

/// A cluster that this process uses; dropped, it ends, unless it is detached.
pub struct Cluster {
    work: PathBuf,
    owner: Option<Child>,
    state: State,
}

/// What a later call needs to find the cluster again.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    /// The `unshare` process, and when it started (clock ticks since boot), so that a reused number is not taken for it.
    unshare: u32,
    started: u64,
    /// First process of the cluster's PID namespace, as seen from here.
    init: u32,
    path: String,
    nodes: BTreeMap<String, Running>,
}

#[derive(Serialize, Deserialize)]
struct Running {
    spec: NodeSpec,
    /// First process of the node, as the supervisor sees it.
    init: u32,
}

impl Cluster {
    /// Builds the product and starts the control plane. The cluster ends with this process.
    pub fn start(name: &str) -> Result<Self> {
        Self::begin(name, false, Some(Profile::Ci))
    }

    /// The same with the product as it is shipped.
    pub fn start_release(name: &str) -> Result<Self> {
        Self::begin(name, false, Some(Profile::Release))
    }

    /// The same, but the cluster goes on until [`Cluster::end`].
    pub fn start_detached(name: &str) -> Result<Self> {
        Self::begin(name, true, Some(Profile::Ci))
    }

    /// The control plane alone, without the product's images: for nodes there would be nothing to run.
    pub fn control_plane(name: &str) -> Result<Self> {
        Self::begin(name, false, None)
    }

    fn begin(name: &str, detached: bool, images: Option<Profile>) -> Result<Self> {
        packages::ensure()?;
        if let Ok(running) = Self::attach(name) {
            running.end()?;
        }
        let work = paths::work(name);
        clear(&work)?;
        let path = built(&work.join("images"), images)?;
        progress::step("start the control plane", || {
            Self::launch(work, path, detached)
        })
    }

    fn launch(work: PathBuf, path: String, detached: bool) -> Result<Self> {
        let own = std::env::current_exe().context("find this program")?;
        let own = if own.ends_with("e2e") {
            own
        } else {
            product::own_binary()?
        };
        let mut command = cmd::command(
            "unshare",
            [
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ],
        );
        command
            .arg(own)
            .arg("cluster-init")
            .arg(&work)
            .args(detached.then_some("--detached"));
        let log = std::fs::File::create(work.join("supervisor.log"))
            .context("create the supervisor's log")?;
        command
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .env("PATH", &path);
        // Its own process group: Ctrl-C reaches the owner, whose end ends the cluster.
        let mut child = command
            .process_group(0)
            .spawn()
            .context("start the cluster's supervisor")?;
        let mut up =
            || supervisor::socket(&work).exists() || matches!(child.try_wait(), Ok(Some(_)));
        progress::wait_for("the control plane (see supervisor.log)", 120, || {
            up().then_some(())
        })?;
        if let Ok(Some(status)) = child.try_wait() {
            let log = std::fs::read_to_string(work.join("supervisor.log")).unwrap_or_default();
            bail!(
                "the control plane ended with {status}\n{}",
                cmd::last_lines(&log, 20)
            );
        }
        let unshare = child.id();
        let state = State {
            unshare,
            started: start_time(unshare).context("the supervisor ended")?,
            init: supervisor::first_process(unshare)?,
            path,
            nodes: BTreeMap::new(),
        };
        let cluster = Self {
            work,
            owner: (!detached).then_some(child),
            state,
        };
        cluster.save()?;
        Ok(cluster)
    }

    /// A cluster that another process started.
    pub fn attach(name: &str) -> Result<Self> {
        let work = paths::work(name);
        let file = work.join("state.json");
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("no cluster `{name}`: start one with `up`"))?;
        let state: State = serde_json::from_str(&text)
            .with_context(|| format!("understand {}", file.display()))?;
        if start_time(state.unshare) != Some(state.started) {
            bail!("the cluster `{name}` does not run: start one with `up`");
        }
        Ok(Self {
            work,
            owner: None,
            state,
        })
    }

    /// Starts a node, which gets ready beside others: [`Cluster::wait_for_nodes`].
    pub fn add_node(
        &mut self,
        machine: Option<&str>,
        adjust: impl FnOnce(&mut NodeSpec),
    ) -> Result<String> {
        let index = self.state.nodes.len();
        let name = format!("node-{index}");
        let machine = machine.map(str::to_owned);
        let mut spec = NodeSpec {
            name: name.clone(),
            index,
            machine,
            boot_id: new_boot_id()?,
            ..NodeSpec::default()
        };
        adjust(&mut spec);
        let shown = spec.machine.clone().unwrap_or_else(|| "no GPU".to_owned());
        progress::step(&format!("start {name} ({shown})"), || {
            self.tell(spec, |spec| Request::Start(Box::new(spec)))
        })?;
        Ok(name)
    }

    /// Waits until the API server says of every node that it is ready.
    pub fn wait_for_nodes(&self) -> Result<()> {
        let mut names = self.state.nodes.keys();
        progress::step("nodes are Ready", || {
            names.try_for_each(|name| self.wait_ready(name))
        })
    }

    /// Power failure and start with a new boot id.
    pub fn reboot(&mut self, node: &str) -> Result<()> {
        let mut spec = self.node(node)?.spec.clone();
        spec.boot_id = new_boot_id()?;
        let boot_id = spec.boot_id.clone();
        self.tell(spec, |spec| Request::Reboot(Box::new(spec)))?;
        let path = "jsonpath={.status.nodeInfo.bootID}";
        let seen =
            || (self.kubectl(["get", "node", node, "-o", path]).ok()? == boot_id).then_some(());
        progress::wait_for("the kubelet to report the new boot id", 90, seen)?;
        self.wait_ready(node)
    }

    fn tell(&mut self, spec: NodeSpec, request: impl FnOnce(NodeSpec) -> Request) -> Result<()> {
        let init = supervisor::ask(&self.work, &request(spec.clone()))?;
        self.state
            .nodes
            .insert(spec.name.clone(), Running { spec, init });
        self.save()
    }

    fn wait_ready(&self, node: &str) -> Result<()> {
        let path = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        let ready =
            || (self.kubectl(["get", "node", node, "-o", path]).ok()? == "True").then_some(());
        let log = self.work.join(format!("{node}.log"));
        progress::wait_for(
            &format!("{node} to be Ready (see {})", log.display()),
            120,
            ready,
        )
    }

    /// Runs `kubectl` as an admin and returns what it prints.
    pub fn kubectl<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        self.inside("kubectl", arguments)
    }

    /// Runs `helm` as an admin and returns what it prints.
    pub fn helm<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        self.inside("helm", arguments)
    }

    fn inside<'a>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<String> {
        let mut command = cmd::command(
            "nsenter",
            ["--net", "-t", &self.state.init.to_string(), program],
        );
        command
            .args(arguments)
            .env("PATH", &self.state.path)
            .env("KUBECONFIG", self.kubeconfig());
        cmd::output(&mut command)
    }

    /// Runs a program on a node, as root in the node's own namespaces.
    pub fn on_node<'a>(
        &self,
        node: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Result<String> {
        let (outer, inner) = (
            self.state.init.to_string(),
            self.node(node)?.init.to_string(),
        );
        let mut command = cmd::command(
            "nsenter",
            ["--mount", "--pid", "--net", "-t", &outer, "nsenter"],
        );
        command
            .args(["--mount", "--pid", "--net", "-t", &inner])
            .args(arguments)
            .env("PATH", &self.state.path);
        cmd::output(&mut command)
    }

    /// Kills the kubelet of a node; its init starts it again.
    pub fn restart_kubelet(&self, node: &str) -> Result<()> {
        self.on_node(node, ["pkill", "-9", "-x", "kubelet"])
            .map(drop)
    }

    /// Admin's configuration, usable in the cluster's network namespace.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.work.join("admin.kubeconfig")
    }

    /// Network namespace in which the API server answers.
    #[must_use]
    pub fn network_namespace(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.state.init))
    }

    /// Work folder: logs and disks.
    #[must_use]
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Names of the nodes and the machines that they show.
    #[must_use]
    pub fn nodes(&self) -> Vec<(String, Option<String>)> {
        self.state
            .nodes
            .values()
            .map(|node| (node.spec.name.clone(), node.spec.machine.clone()))
            .collect()
    }

    fn node(&self, name: &str) -> Result<&Running> {
        self.state
            .nodes
            .get(name)
            .with_context(|| format!("no node `{name}`"))
    }

    fn save(&self) -> Result<()> {
        let file = self.work.join("state.json");
        let text = serde_json::to_string_pretty(&self.state)?;
        std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))
    }

    /// Ends exactly what was started. The kernel ends the whole PID namespace with its first process.
    pub fn end(self) -> Result<()> {
        self.stop()
    }

    fn stop(&self) -> Result<()> {
        if start_time(self.state.unshare) == Some(self.state.started) {
            cmd::exec("kill", ["-9", &self.state.unshare.to_string()])?;
            let gone = || (start_time(self.state.init).is_none()).then_some(());
            progress::wait_for("the cluster to end", 30, gone)?;
        }
        let _ = std::fs::remove_file(self.work.join("state.json"));
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut owner) = self.owner.take() {
            let _ = self.stop();
            let _ = owner.wait();
        }
    }
}

/// Start time of a process in clock ticks since boot: field 22 of `/proc/<pid>/stat` (proc(5)).
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    let mut fields = after_name.split_whitespace();
    (fields.next()? != "Z").then_some(())?;
    fields.nth(18)?.parse().ok()
}

fn new_boot_id() -> Result<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").context("make a boot id")?;
    Ok(id.trim().to_owned())
}

/// Builds what is missing, the tools beside the product, since neither keeps all cores busy to its end; returns the search
/// path of the tools.
fn built(folder: &Path, profile: Option<Profile>) -> Result<String> {
    std::thread::scope(|scope| {
        let product = scope.spawn(|| profile.map_or(Ok(()), |of| product::images(folder, of)));
        let path = tools::search_path();
        let panicked = || anyhow::anyhow!("the build of the product panicked");
        product.join().map_err(|_| panicked())??;
        path
    })
}

fn clear(work: &Path) -> Result<()> {
    if work.exists() {
        std::fs::remove_dir_all(work).with_context(|| format!("remove {}", work.display()))?;
    }
    std::fs::create_dir_all(work.join("images"))
        .with_context(|| format!("create {}", work.display()))
}
