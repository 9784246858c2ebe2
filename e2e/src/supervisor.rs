//! The first process of a cluster's PID namespace: starts the control plane, then nodes as it is told over a socket.
//!
//! When it ends, the kernel ends everything below it. Unless it is detached it ends when its standard input closes,
//! which is when its owner ends, however that happens.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::node::{self, NodeSpec};
use crate::{cmd, control_plane, progress};

/// What the supervisor can be told, one JSON value a line; it answers with a [`Reply`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    /// Start a node.
    Start(Box<NodeSpec>),
    /// Stop a node as a power failure does, and start it again from the same disk.
    Reboot(Box<NodeSpec>),
    /// Stop a node as a power failure does.
    Stop(String),
    /// End the cluster.
    End,
}

/// The answer: the process id of the node's first process in the supervisor's PID namespace, or what went wrong.
pub type Reply = std::result::Result<u32, String>;

/// Where the supervisor listens.
#[must_use]
pub fn socket(work: &Path) -> PathBuf {
    work.join("control.sock")
}

struct Supervisor {
    work: PathBuf,
    nodes: BTreeMap<String, Child>,
}

/// Runs until it is told to end.
pub fn run(work: &Path, detached: bool) -> Result<()> {
    if !detached {
        std::thread::spawn(end_with_owner);
    }
    let _parts = control_plane::start(work)?;
    let listener = listen(&socket(work)).context("listen for requests")?;
    let mut supervisor = Supervisor {
        work: work.to_owned(),
        nodes: BTreeMap::new(),
    };
    for stream in listener.incoming() {
        match supervisor.answer(&stream.context("accept a request")?) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => eprintln!("a request was not answered: {error:#}"),
        }
    }
    Ok(())
}

/// The socket gets its name when it takes connections: between bind(2) and listen(2) they are refused.
fn listen(path: &Path) -> Result<UnixListener> {
    let unnamed = path.with_extension("new");
    let listener = UnixListener::bind(&unnamed)?;
    std::fs::rename(unnamed, path)?;
    Ok(listener)
}

fn end_with_owner() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}

impl Supervisor {
    /// Answers one request; true where it was the last.
    fn answer(&mut self, mut stream: &UnixStream) -> Result<bool> {
        let mut line = String::new();
        BufReader::new(stream)
            .read_line(&mut line)
            .context("read a request")?;
        let request: Request =
            serde_json::from_str(&line).with_context(|| format!("understand {line}"))?;
        let last = matches!(request, Request::End);
        let reply: Reply = self
            .carry_out(request)
            .map_err(|error| format!("{error:#}"));
        let _ = writeln!(stream, "{}", serde_json::to_string(&reply)?);
        Ok(last)
    }

    fn carry_out(&mut self, request: Request) -> Result<u32> {
        match request {
            Request::Start(spec) => self.start(&spec),
            Request::Reboot(spec) => {
                self.stop(&spec.name)?;
                self.start(&spec)
            }
            Request::Stop(name) => self.stop(&name),
            Request::End => Ok(0),
        }
    }

    fn start(&mut self, spec: &NodeSpec) -> Result<u32> {
        if self.nodes.contains_key(&spec.name) {
            bail!("{} runs already", spec.name);
        }
        node::disk(&self.work, spec)?;
        let file = self.work.join(&spec.name).join("spec.json");
        std::fs::write(&file, serde_json::to_string_pretty(spec)?)
            .with_context(|| format!("write {}", file.display()))?;
        let own = std::env::current_exe().context("find this program")?;
        let unshare = [
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation=private",
        ];
        let mut command = cmd::command("unshare", unshare);
        command.arg(own).arg("node-init").arg(&self.work).arg(&file);
        let child = cmd::spawn_logged(&mut command, &self.work.join(format!("{}.log", spec.name)))?;
        let pid = first_process(child.id())?;
        self.nodes.insert(spec.name.clone(), child);
        cable(spec.index, pid)?;
        Ok(pid)
    }

    fn stop(&mut self, name: &str) -> Result<u32> {
        let mut child = self
            .nodes
            .remove(name)
            .with_context(|| format!("{name} does not run"))?;
        child.kill().with_context(|| format!("kill {name}"))?;
        child.wait().with_context(|| format!("wait for {name}"))?;
        Ok(0)
    }
}

/// The process that `unshare` forked: the first one of the new PID namespace.
pub fn first_process(unshare: u32) -> Result<u32> {
    let path = format!("/proc/{unshare}/task/{unshare}/children");
    let child = || {
        std::fs::read_to_string(&path)
            .ok()?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    };
    progress::wait_for("unshare to start its child", 10, child)
}

/// Joins a node to the bridge: a pair of interfaces, one end in the node's namespace as `eth0`, and the pods' route.
fn cable(index: usize, pid: u32) -> Result<()> {
    let (outer, inner) = (format!("n{index}"), format!("p{index}"));
    let own = std::fs::read_link("/proc/self/ns/net").context("read the own network namespace")?;
    let path = format!("/proc/{pid}/ns/net");
    let apart = || std::fs::read_link(&path).ok().filter(|other| *other != own);
    progress::wait_for("the node's network namespace", 10, apart)?;
    // After a power failure the old pair may still be on its way out with its namespace.
    let _ = cmd::exec("ip", ["link", "del", &outer]);
    cmd::exec(
        "ip",
        [
            "link", "add", &outer, "type", "veth", "peer", "name", &inner,
        ],
    )?;
    cmd::exec("ip", ["link", "set", &outer, "master", "cp0", "up"])?;
    cmd::exec(
        "ip",
        [
            "link",
            "set",
            &inner,
            "netns",
            &pid.to_string(),
            "name",
            "eth0",
        ],
    )?;
    let route = [
        format!("10.244.{index}.0/24"),
        "via".into(),
        node::address(index),
    ];
    cmd::exec(
        "ip",
        ["route", "replace"]
            .into_iter()
            .map(String::from)
            .chain(route),
    )
}

/// Sends one request and waits for the answer.
pub fn ask(work: &Path, request: &Request) -> Result<u32> {
    let mut stream = UnixStream::connect(socket(work)).with_context(|| {
        let log = std::fs::read_to_string(work.join("supervisor.log")).unwrap_or_default();
        let last = cmd::last_lines(&log, 20);
        format!("reach the cluster's supervisor, whose log ends with\n{last}")
    })?;
    writeln!(stream, "{}", serde_json::to_string(request)?).context("send a request")?;
    let mut line = String::new();
    BufReader::new(&stream)
        .read_line(&mut line)
        .context("read the answer")?;
    let reply: Reply =
        serde_json::from_str(&line).with_context(|| format!("understand the answer `{line}`"))?;
    reply.map_err(anyhow::Error::msg)
}
