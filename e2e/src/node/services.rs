//! containerd, kube-proxy and kubelet of a node. The kubelet is started again when it ends, as systemd would.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::mount::MsFlags;
use serde_json::json;

use super::NodeSpec;
use super::root::{bind, mount_at, own};
use crate::{cmd, progress};

/// Starts the node's services and keeps the kubelet running.
pub(super) fn run(work: &Path, spec: &NodeSpec) -> Result<()> {
    bind(&own(work, spec, "kubelet"), Path::new("/var/lib/kubelet"))?;
    mount_at(
        None,
        Path::new("/var/lib/kubelet"),
        None,
        MsFlags::MS_SHARED | MsFlags::MS_REC,
        None,
    )?;
    let _containerd = containerd(work, spec)?;
    import_images(work, spec)?;
    let _proxy = proxy(work, spec)?;
    keep_kubelet(work, spec)
}

fn containerd(work: &Path, spec: &NodeSpec) -> Result<std::process::Child> {
    let config = own(work, spec, "containerd.toml");
    write(&config, &containerd_config(work, spec))?;
    write(
        &own(work, spec, "cni/10-bridge.conflist"),
        &cni_config(spec.index).to_string(),
    )?;
    let log = own(work, spec, "containerd.log");
    let child = cmd::spawn_logged(cmd::command("containerd", ["-c"]).arg(&config), &log)?;
    progress::wait_for("containerd (see containerd.log)", 60, || {
        cmd::exec("ctr", ["version"]).ok()
    })?;
    Ok(child)
}

fn containerd_config(work: &Path, spec: &NodeSpec) -> String {
    let (root, cni) = (own(work, spec, "containerd"), own(work, spec, "cni"));
    format!(
        r#"version = 3
root = "{root}"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "{cni}"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
enable_cdi = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
"#,
        root = root.display(),
        cni = cni.display()
    )
}

fn cni_config(index: usize) -> serde_json::Value {
    json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [{
        "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": format!("10.244.{index}.0/24")}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }]})
}

/// Imports the archives once; the store is on the node's disk.
fn import_images(work: &Path, spec: &NodeSpec) -> Result<()> {
    let folder = work.join("images");
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))?;
    for archive in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let done = own(work, spec, "containerd").join(format!(
            "imported-{}",
            archive.file_name().unwrap_or_default().display()
        ));
        if !done.exists() {
            cmd::run(cmd::command("ctr", ["-n", "k8s.io", "images", "import"]).arg(&archive))?;
            write(&done, "")?;
        }
    }
    Ok(())
}

fn proxy(work: &Path, spec: &NodeSpec) -> Result<std::process::Child> {
    let mut command = cmd::command(
        "kube-proxy",
        ["--proxy-mode=nftables", "--cluster-cidr=10.244.0.0/16"],
    );
    command.arg(format!(
        "--kubeconfig={}",
        work.join("proxy.kubeconfig").display()
    ));
    command.arg(format!("--hostname-override={}", spec.name));
    command.args([
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]);
    cmd::spawn_logged(&mut command, &own(work, spec, "proxy.log"))
}

fn keep_kubelet(work: &Path, spec: &NodeSpec) -> Result<()> {
    let config = own(work, spec, "kubelet.yaml");
    write(&config, &kubelet_config(spec).to_string())?;
    loop {
        let mut command = cmd::command("kubelet", ["--root-dir=/var/lib/kubelet"]);
        command.arg(format!("--config={}", config.display()));
        command.arg(format!("--node-ip={}", super::address(spec.index)));
        command.arg(format!(
            "--kubeconfig={}",
            work.join(format!("{}.kubeconfig", spec.name)).display()
        ));
        command.arg(format!("--hostname-override={}", spec.name));
        command.arg(format!("--cert-dir={}", own(work, spec, "pki").display()));
        let mut child = cmd::spawn_logged(&mut command, &own(work, spec, "kubelet.log"))?;
        child.wait().context("wait for the kubelet")?;
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// For cgroup v1 as well as v2, and without a cgroup hierarchy of its own to manage.
fn kubelet_config(spec: &NodeSpec) -> serde_json::Value {
    let policy = if spec.topology_policy.is_empty() {
        "none"
    } else {
        &spec.topology_policy
    };
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs", "failCgroupV1": false, "cgroupsPerQOS": false, "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "failSwapOn": false, "readOnlyPort": 0, "topologyManagerPolicy": policy,
        "clusterDNS": ["10.96.0.10"], "clusterDomain": "cluster.local",
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"},
        // The images are only there, and the disk is not the cluster's own: a full one must not cost them.
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "2s", "syncFrequency": "5s",
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
