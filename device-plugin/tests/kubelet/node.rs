//! A node for the plugin: its directories, files and ports, and the plugin itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use device_plugin::accept::Source;
use device_plugin::doctor::Where;
use device_plugin::serve::{Options, serve};
use device_plugin::timing::Timing;
use host::root::Root;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use topology::node_file::NodeFile;

use crate::sample;

/// Directories of one node.
pub struct Node {
    base: tempfile::TempDir,
}

/// A plugin that runs in this process.
pub struct Plugin {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Node {
    pub fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for dir in ["run", "plugins", "root", "dev/infiniband"] {
            std::fs::create_dir_all(base.path().join(dir)).unwrap();
        }
        std::fs::write(base.path().join("boot_id"), format!("{}\n", sample::BOOT)).unwrap();
        Self { base }
    }

    /// A node whose file has these pairs; their ports are up.
    pub fn with(file: &NodeFile) -> Self {
        let node = Self::new();
        node.write(file);
        for n in 0..file
            .resources
            .iter()
            .map(|resource| resource.devices.len())
            .max()
            .unwrap_or(0)
        {
            node.port(n, "4: ACTIVE");
        }
        node
    }

    pub fn kubelet_dir(&self) -> PathBuf {
        self.base.path().join("plugins")
    }

    pub fn node_file(&self) -> PathBuf {
        self.base.path().join("run/node.json")
    }

    /// Writes the node file as the agent does: another file, then a rename.
    pub fn write(&self, file: &NodeFile) {
        self.write_text(&file.to_json());
    }

    pub fn write_text(&self, text: &str) {
        let new = self.base.path().join("run/.node.json.new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.node_file()).unwrap();
    }

    pub fn boot(&self, id: &str) {
        std::fs::write(self.base.path().join("boot_id"), id).unwrap();
    }

    /// Sets the state of port 1 of `mlx5_<n>`.
    pub fn port(&self, n: usize, state: &str) {
        let dir = self
            .base
            .path()
            .join(format!("root/sys/class/infiniband/mlx5_{n}/ports/1"));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("state"), format!("{state}\n")).unwrap();
    }

    /// What the host's `/sys` says of `uverbs<n>`.
    pub fn verbs(&self, n: usize, rdma: &str) {
        let verbs = format!("root/sys/class/infiniband_verbs/uverbs{n}");
        let verbs = self.base.path().join(verbs);
        std::fs::create_dir_all(&verbs).unwrap();
        std::fs::write(verbs.join("ibdev"), format!("{rdma}\n")).unwrap();
    }

    pub fn dev(&self, below: &str) -> PathBuf {
        self.base.path().join("dev").join(below)
    }

    /// Where `doctor` looks.
    pub fn places(&self) -> Where {
        let base = self.base.path();
        Where {
            source: Source {
                node_file: self.node_file(),
                boot_id_file: base.join("boot_id"),
            },
            kubelet_dir: self.kubelet_dir(),
            root: Root::new(base.join("root")),
        }
    }

    pub fn timing() -> Timing {
        Timing {
            poll: Duration::from_millis(50),
            ports: Duration::from_millis(20),
            stream_grace: Duration::from_millis(300),
            retry_min: Duration::from_millis(10),
            retry_max: Duration::from_millis(100),
            ..Timing::default()
        }
    }

    pub fn start(&self) -> Plugin {
        self.start_with(Self::timing())
    }

    pub fn start_with(&self, timing: Timing) -> Plugin {
        let base = self.base.path();
        let options = Options {
            source: Source {
                node_file: self.node_file(),
                boot_id_file: base.join("boot_id"),
            },
            kubelet_dir: self.kubelet_dir(),
            root: Root::new(base.join("root")),
            dev: Some(base.join("dev")),
            timing,
        };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(options, async {
            let _ = stopped.await;
        }));
        Plugin { stop, task }
    }

    /// Takes a directory of the node away.
    pub fn remove(&self, dir: &str) {
        std::fs::remove_dir_all(self.base.path().join(dir)).unwrap();
    }

    /// Every file of the node with its size and the time of its last change.
    pub fn tree(&self) -> BTreeMap<PathBuf, (u64, SystemTime)> {
        let mut tree = BTreeMap::new();
        let mut dirs = vec![self.base.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let entry = entry.unwrap();
                let meta = entry.metadata().unwrap();
                if meta.is_dir() {
                    dirs.push(entry.path());
                }
                tree.insert(entry.path(), (meta.len(), meta.modified().unwrap()));
            }
        }
        tree
    }

    /// The plugin's sockets.
    pub fn sockets(&self) -> Vec<String> {
        sockets(&self.kubelet_dir())
    }
}

pub fn sockets(dir: &Path) -> Vec<String> {
    let paths = device_plugin::endpoint::own_sockets(dir).unwrap();
    paths
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

impl Plugin {
    /// SIGTERM.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}
