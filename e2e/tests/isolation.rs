//! The machine underneath: what a cluster leaves on it, also after a crash of its owner.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that fails should say where"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use e2e::cluster::Cluster;
use e2e::paths;
use e2e::progress::wait_for;

/// Path → what can be told of it: kind, mode, owner, and for files the content.
fn picture(folders: &[&str]) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    for folder in folders {
        look(Path::new(folder), &mut seen);
    }
    seen
}

fn look(path: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    let Ok(metadata) = path.symlink_metadata() else {
        return;
    };
    let mut text = format!(
        "{:o} {} {}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid()
    );
    if metadata.is_symlink() {
        let target = std::fs::read_link(path).ok();
        text = format!("{text} -> {target:?}");
    } else if metadata.is_file() {
        let content = std::fs::read(path).unwrap_or_default();
        text = format!("{text} {}", paths::sha256(content));
    } else if metadata.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries
            .filter_map(Result::ok)
            .for_each(|entry| look(&entry.path(), seen));
    }
    seen.insert(path.to_owned(), text);
}

fn mounts() -> usize {
    std::fs::read_to_string("/proc/self/mounts")
        .unwrap()
        .lines()
        .count()
}

#[test]
fn the_machine_underneath_stays_as_it_was() {
    let folders = ["/etc", "/run", "/lib/modules"];
    let (before, mounted) = (picture(&folders), mounts());
    assert!(before.len() > 100, "only {} files seen", before.len());
    let mut cluster = Cluster::start("isolation").unwrap();
    cluster.add_node(Some("nvidia-dgx-a100"), |_| ()).unwrap();
    cluster.wait_for_nodes().unwrap();
    // What a privileged pod writes below its host's root lands in the node alone.
    let write = "echo changed >/etc/gpurdma-scenario && mkdir -p /run/gpurdma && echo 1 >/run/gpurdma/x && modprobe ib_umad";
    cluster.on_node("node-0", ["sh", "-c", write]).unwrap();
    drop(cluster);
    assert_eq!(mounts(), mounted, "mounts are left");
    let after = picture(&folders);
    let changed: Vec<_> = before
        .iter()
        .filter(|(path, text)| after.get(*path) != Some(text))
        .map(|(path, _)| path)
        .chain(after.keys().filter(|path| !before.contains_key(*path)))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
}

#[test]
fn a_cluster_ends_when_its_owner_is_killed() {
    let program = e2e::product::own_binary().unwrap();
    let mut owner = std::process::Command::new(program)
        .args(["--cluster", "orphan", "hold"])
        .spawn()
        .unwrap();
    let log = paths::work("orphan").join("state.json");
    wait_for("the cluster to be up", 120, || log.exists().then_some(())).unwrap();
    let init = || Cluster::attach("orphan").ok().map(drop);
    wait_for("the cluster to be found", 10, init).unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_for("the cluster to end", 30, || {
        Cluster::attach("orphan").is_err().then_some(())
    })
    .unwrap();
}
