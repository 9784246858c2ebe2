//! Trees as a kernel shows them, file by file.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use topology::machine::Machine;

use crate::machine::{Options, machine};
use crate::root::Root;

/// A tree of files and links, written by hand as a kernel shows it.
pub(in crate::machine) struct Tree(tempfile::TempDir);

impl Tree {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(in crate::machine) fn path(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(in crate::machine) fn file(&self, path: &str, content: &str) -> &Self {
        std::fs::write(self.path(path), content).unwrap();
        self
    }

    pub(in crate::machine) fn link(&self, path: &str, target: &str) -> &Self {
        symlink(target, self.path(path)).unwrap();
        self
    }

    /// A PCI function at `path` below /sys/devices.
    pub(super) fn function(&self, path: &str, class: &str, vendor: &str, numa: &str) -> &Self {
        let name = path.rsplit('/').next().unwrap();
        let directory = format!("sys/devices/{path}");
        self.file(&format!("{directory}/class"), class)
            .file(&format!("{directory}/vendor"), vendor);
        self.file(&format!("{directory}/device"), "0x2330\n")
            .file(&format!("{directory}/numa_node"), numa);
        self.link(
            &format!("sys/bus/pci/devices/{name}"),
            &format!("../../../devices/{path}"),
        )
    }

    pub(in crate::machine) fn root(&self) -> Root {
        Root::new(self.0.path())
    }

    pub(super) fn read(&self) -> Machine {
        machine(&self.root(), &Options::default())
    }
}

pub(super) const SWITCH: &str = "pci0000:10/0000:10:01.0/0000:11:00.0";
pub(super) const GPU: &str = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0";
pub(in crate::machine) const NIC: &str =
    "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0";

/// A root port, a switch, a GPU and a NIC below it.
pub(in crate::machine) fn pair() -> Tree {
    let tree = Tree::new();
    tree.function("pci0000:10/0000:10:01.0", "0x060400\n", "0x8086\n", "1\n");
    tree.function(SWITCH, "0x060400\n", "0x1000\n", "1\n");
    tree.function(
        &format!("{SWITCH}/0000:12:00.0"),
        "0x060400\n",
        "0x1000\n",
        "1\n",
    );
    tree.function(
        &format!("{SWITCH}/0000:12:01.0"),
        "0x060400\n",
        "0x1000\n",
        "1\n",
    );
    tree.function(GPU, "0x030200\n", "0x10de\n", "1\n");
    tree.function(NIC, "0x020700\n", "0x15b3\n", "1\n");
    tree.link(
        "sys/class/infiniband/mlx5_0",
        &format!("../../devices/{NIC}/infiniband/mlx5_0"),
    );
    let device = format!("sys/devices/{NIC}/infiniband/mlx5_0");
    tree.link(&format!("{device}/device"), "../../../0000:14:00.0");
    tree.file(&format!("{device}/ports/1/state"), "4: ACTIVE\n")
        .file(&format!("{device}/ports/1/rate"), "400 Gb/sec (4X NDR)\n");
    tree.file(&format!("{device}/ports/1/link_layer"), "InfiniBand\n");
    tree.file(&format!("sys/devices/{NIC}/net/ib0/mtu"), "4092\n")
        .file(
            &format!("sys/devices/{NIC}/infiniband_verbs/uverbs3/dev"),
            "231:195",
        );
    let information = "Model: \t NVIDIA H100\nGPU UUID: \t GPU-01234567-89ab-cdef-0123-456789abcdef\nDevice Minor: \t 0\n";
    tree.file(
        "proc/driver/nvidia/gpus/0000:13:00.0/information",
        information,
    );
    tree.file(
        &format!("sys/devices/{GPU}/resource"),
        "0x1000 0x1fff 0x40200\n0x20000000000 0x21fffffffff 0x14220c\n",
    );
    tree
}
