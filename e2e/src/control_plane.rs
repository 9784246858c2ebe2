//! etcd, API server, controller manager and scheduler in the cluster's own network namespace.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Child;

use anyhow::{Context, Result};

use crate::{cmd, progress};

/// Address of the control plane on the bridge that joins the nodes.
pub const ADDRESS: &str = "10.245.0.1";
/// Most nodes that a cluster can have: each has a token from the start, since the token file is read once.
pub const MAX_NODES: usize = 16;

/// Users with a fixed token: name, user, groups.
const USERS: &[(&str, &str, &str)] = &[
    ("admin", "admin", "system:masters"),
    ("kcm", "system:kube-controller-manager", ""),
    ("sched", "system:kube-scheduler", ""),
    ("proxy", "system:kube-proxy", ""),
];

/// Starts everything and waits until the API server is ready.
pub fn start(work: &Path) -> Result<Vec<Child>> {
    network()?;
    cmd::exec("openssl", ["genrsa", "-out", &at(work, "sa.key"), "2048"])?;
    credentials(work)?;
    let mut children = vec![etcd(work)?, api_server(work)?];
    let admin = at(work, "admin.kubeconfig");
    let ready = || {
        cmd::exec(
            "kubectl",
            ["--kubeconfig", &admin, "get", "--raw", "/readyz"],
        )
        .ok()
    };
    progress::wait_for("the API server to be ready (see apiserver.log)", 60, ready)?;
    children.push(controller_manager(work)?);
    children.push(scheduler(work)?);
    let binding = [
        "create",
        "clusterrolebinding",
        "proxy",
        "--clusterrole=system:node-proxier",
        "--user=system:kube-proxy",
    ];
    cmd::exec(
        "kubectl",
        ["--kubeconfig", &admin].into_iter().chain(binding),
    )?;
    Ok(children)
}

fn network() -> Result<()> {
    cmd::exec("ip", ["link", "set", "lo", "up"])?;
    cmd::exec("ip", ["link", "add", "cp0", "type", "bridge"])?;
    cmd::exec(
        "ip",
        ["addr", "add", &format!("{ADDRESS}/24"), "dev", "cp0"],
    )?;
    cmd::exec("ip", ["link", "set", "cp0", "up"])?;
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        .context("switch on ip_forward in the cluster's namespace")
}

fn credentials(work: &Path) -> Result<()> {
    let mut tokens = String::new();
    for (name, user, groups) in USERS {
        writeln!(tokens, "{name}token,{user},{name},\"{groups}\"")?;
        kubeconfig(work, name, &format!("{name}token"))?;
    }
    for index in 0..MAX_NODES {
        writeln!(
            tokens,
            "n{index}token,system:node:node-{index},n{index},\"system:nodes\""
        )?;
        kubeconfig(work, &format!("node-{index}"), &format!("n{index}token"))?;
    }
    write(work, "tokens.csv", &tokens)
}

fn kubeconfig(work: &Path, name: &str, token: &str) -> Result<()> {
    let config = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "local",
        "clusters": [{"name": "local", "cluster": {"server": format!("https://{ADDRESS}:6443"), "insecure-skip-tls-verify": true}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": name}}],
    });
    write(
        work,
        &format!("{name}.kubeconfig"),
        &serde_json::to_string_pretty(&config)?,
    )
}

fn etcd(work: &Path) -> Result<Child> {
    let arguments = [
        format!("--data-dir={}", at(work, "etcd")),
        "--listen-client-urls=http://127.0.0.1:2379".into(),
        "--advertise-client-urls=http://127.0.0.1:2379".into(),
        "--listen-peer-urls=http://127.0.0.1:2380".into(),
        "--unsafe-no-fsync".into(),
    ];
    start_part(work, "etcd", "etcd", &arguments)
}

fn api_server(work: &Path) -> Result<Child> {
    let arguments = [
        "--etcd-servers=http://127.0.0.1:2379".into(),
        format!("--cert-dir={}", at(work, "certs")),
        format!("--bind-address={ADDRESS}"),
        format!("--advertise-address={ADDRESS}"),
        "--secure-port=6443".into(),
        format!("--service-account-key-file={}", at(work, "sa.key")),
        format!("--service-account-signing-key-file={}", at(work, "sa.key")),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--token-auth-file={}", at(work, "tokens.csv")),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--allow-privileged=true".into(),
        "--kubelet-preferred-address-types=InternalIP".into(),
    ];
    start_part(work, "kube-apiserver", "apiserver", &arguments)
}

fn controller_manager(work: &Path) -> Result<Child> {
    let arguments = [
        format!("--kubeconfig={}", at(work, "kcm.kubeconfig")),
        format!("--authentication-kubeconfig={}", at(work, "kcm.kubeconfig")),
        format!("--authorization-kubeconfig={}", at(work, "kcm.kubeconfig")),
        "--use-service-account-credentials".into(),
        format!("--service-account-private-key-file={}", at(work, "sa.key")),
        format!("--root-ca-file={}", at(work, "certs/apiserver.crt")),
        "--leader-elect=false".into(),
        format!("--cert-dir={}", at(work, "kcm")),
    ];
    start_part(work, "kube-controller-manager", "kcm", &arguments)
}

fn scheduler(work: &Path) -> Result<Child> {
    let arguments = [
        format!("--kubeconfig={}", at(work, "sched.kubeconfig")),
        format!(
            "--authentication-kubeconfig={}",
            at(work, "sched.kubeconfig")
        ),
        format!(
            "--authorization-kubeconfig={}",
            at(work, "sched.kubeconfig")
        ),
        "--leader-elect=false".into(),
        format!("--cert-dir={}", at(work, "sched")),
    ];
    start_part(work, "kube-scheduler", "sched", &arguments)
}

fn start_part(work: &Path, program: &str, log: &str, arguments: &[String]) -> Result<Child> {
    cmd::spawn_logged(
        &mut cmd::command(program, arguments),
        &work.join(format!("{log}.log")),
    )
}

fn at(work: &Path, name: &str) -> String {
    work.join(name).display().to_string()
}

fn write(work: &Path, name: &str, text: &str) -> Result<()> {
    let path = work.join(name);
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}
