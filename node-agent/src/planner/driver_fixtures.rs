//! Hosts for tests about drivers: a node with OFED and GPUs, and what can be wrong with it.

use std::collections::BTreeMap;

use host::facts::driver::{Flavour, GpuDriver, Openibd};
use host::facts::install::dkms::{DkmsBuild, DkmsModule};
use host::facts::install::modules::{ModuleFile, ModuleInfo};
use host::facts::install::packages::{Manager, Package};
use host::facts::kernel::Module;
use host::facts::platform::OsRelease;
use host::facts::{Facts, Sourced};
use topology::fact::Fact;
use topology::machine::{Gpu, Machine, Nic, NicRole};

use crate::compat::matrix::built_in;
use crate::host_state::HostState;

/// The kernel that runs.
pub(crate) const KERNEL: &str = "6.8.0-100-generic";

/// A node and its facts.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) state: HostState,
    pub(crate) machine: Machine,
}

pub(crate) fn found<T>(value: T) -> Sourced<T> {
    Sourced {
        source: "/the/file".to_owned(),
        fact: Fact::Known(value),
    }
}

fn nothing<T>() -> Sourced<T> {
    Sourced {
        source: "/the/file".to_owned(),
        fact: Fact::Absent,
    }
}

pub(crate) fn gpu(index: usize, product: &str) -> Gpu {
    Gpu {
        index,
        uuid: Fact::Known(format!("GPU-{index}")),
        pci: None,
        minor: Fact::Known(0),
        numa: Fact::Absent,
        product: Fact::Known(product.to_owned()),
        bar1_bytes: Fact::Absent,
        nvlinks: BTreeMap::new(),
    }
}

fn nic(role: NicRole) -> Nic {
    Nic {
        index: 0,
        rdma: Some("mlx5_0".to_owned()),
        pci: None,
        numa: Fact::Absent,
        netdevs: Vec::new(),
        ports: Vec::new(),
        physfn: None,
        bond: false,
        uverbs: Fact::Known(0),
        ids: Fact::Known((0x15b3, 0x1021)),
        role,
    }
}

fn module(name: &str, holders: &[&str]) -> Module {
    Module {
        name: name.to_owned(),
        size: Fact::Known(1),
        references: Fact::Known(0),
        holders: holders.iter().map(|&holder| holder.to_owned()).collect(),
        state: "Live".to_owned(),
        version: Fact::Absent,
        source_version: Fact::Known("S".to_owned()),
    }
}

fn file(path: &str, export: Option<u32>, import: Option<u32>) -> ModuleFile {
    ModuleFile {
        path: format!("/lib/modules/{KERNEL}/{path}"),
        modified: Fact::Known(0),
        info: Fact::Known(ModuleInfo {
            version: Fact::Known("24.10-1.1.4".to_owned()),
            source_version: Fact::Known("S".to_owned()),
            vermagic: Fact::Absent,
            peer_memory_export: export.into(),
            peer_memory_import: import.into(),
        }),
        is_loaded: Fact::Known(true),
    }
}

/// A package that is there.
pub(crate) fn package(version: &str) -> Package {
    Package {
        version: version.to_owned(),
        held: false,
        broken: None,
    }
}

impl Fixture {
    fn new(flavour: Flavour) -> Self {
        let mut facts = Facts {
            boot_id: found("boot-1".to_owned()),
            kernel_release: found(KERNEL.to_owned()),
            peer_memory_symbol: found(true),
            gpu_driver: found(GpuDriver {
                version: "570.86.15".to_owned(),
                flavour,
            }),
            ofed_version: found("24.10-1.1.4".to_owned()),
            openibd: Openibd {
                directory: true,
                program: true,
                invocation: Fact::Absent,
            },
            modules: found(vec![
                module("ib_core", &["mlx5_ib"]),
                module("mlx5_core", &["mlx5_ib"]),
                module("mlx5_ib", &[]),
            ]),
            os: found(OsRelease {
                id: "ubuntu".to_owned(),
                id_like: vec!["debian".to_owned()],
                version_id: Some("24.04".to_owned()),
                name: None,
            }),
            ..Facts::default()
        };
        let install = &mut facts.install;
        let files = [
            ("ib_core", file("updates/dkms/ib_core.ko", Some(7), None)),
            ("mlx5_core", file("updates/dkms/mlx5_core.ko", None, None)),
            (
                "nvidia_peermem",
                file("updates/dkms/nvidia-peermem.ko", None, Some(7)),
            ),
        ];
        install.modules = found(files.map(|(name, file)| (name.to_owned(), file)).into());
        install.gpu.gpu_operator = nothing();
        install.packages.manager = found(Manager::Apt);
        install.packages.immutable = nothing();
        install.packages.installed = found([("bash".to_owned(), package("5"))].into());
        install.packages.descriptions = Fact::Known([].into());
        install.packages.locks = Fact::Known([].into());
        let mut state = HostState::try_from(facts).unwrap();
        state.compat = built_in();
        Self {
            state,
            machine: Machine {
                gpus: vec![gpu(0, "NVIDIA H100 80GB HBM3")],
                nics: vec![nic(NicRole::Compute)],
                ..Machine::default()
            },
        }
    }

    pub(crate) fn open_driver() -> Self {
        Self::new(Flavour::Open)
    }

    pub(crate) fn closed_driver() -> Self {
        Self::new(Flavour::Proprietary)
    }

    /// The node with other facts.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(&mut self.state.facts);
        let mut state = HostState::try_from(self.state.facts).unwrap();
        state.compat = self.state.compat;
        state.job = self.state.job;
        Self { state, ..self }
    }

    pub(crate) fn without_peer_memory(self) -> Self {
        self.with(|facts| facts.peer_memory_symbol = found(false))
    }

    pub(crate) fn symbols_unreadable(self) -> Self {
        let why = "read /proc/kallsyms: permission denied".to_owned();
        self.with(|facts| facts.peer_memory_symbol.fact = Fact::Unreadable(why))
    }

    pub(crate) fn kernel(self, release: &str) -> Self {
        self.with(|facts| facts.kernel_release = found(release.to_owned()))
    }

    pub(crate) fn option(self, name: &str, value: &str) -> Self {
        let options = [(name.to_owned(), value.to_owned())].into();
        self.with(|facts| facts.install.boot.config = found(options))
    }

    pub(crate) fn loaded(self, name: &str) -> Self {
        self.with(|facts| {
            if let Fact::Known(modules) = &mut facts.modules.fact {
                modules.push(module(name, &[]));
            }
        })
    }

    pub(crate) fn holder(self, holder: &str) -> Self {
        let module = module("ib_core", &["mlx5_ib", holder]);
        self.with(|facts| facts.modules = found(vec![module]))
    }

    pub(crate) fn no_module_files(self) -> Self {
        self.with(|facts| facts.install.modules = found(BTreeMap::new()))
    }

    /// Checksums that `ib_core` offers and nvidia-peermem was built against.
    pub(crate) fn checksums(self, offered: Option<u32>, needed: Option<u32>) -> Self {
        self.with(|facts| {
            if let Fact::Known(files) = &mut facts.install.modules.fact {
                files.insert(
                    "ib_core".to_owned(),
                    file("updates/dkms/ib_core.ko", offered, None),
                );
                files.insert(
                    "nvidia_peermem".to_owned(),
                    file("updates/dkms/nvidia-peermem.ko", None, needed),
                );
            }
        })
    }

    pub(crate) fn gpu_operator(self) -> Self {
        self.with(|facts| {
            facts.install.gpu.roots = vec!["/run/nvidia/driver".to_owned()];
            facts.install.gpu.gpu_operator = found(vec!["driver-ready".to_owned()]);
        })
    }

    /// The files on disk are newer than what is loaded.
    pub(crate) fn not_in_effect(self) -> Self {
        self.with(|facts| {
            if let Fact::Known(files) = &mut facts.install.modules.fact {
                for file in files.values_mut() {
                    file.is_loaded = Fact::Known(false);
                }
            }
        })
    }

    pub(crate) fn installed(self, name: &str, package: Package) -> Self {
        self.with(|facts| {
            if let Fact::Known(installed) = &mut facts.install.packages.installed.fact {
                installed.insert(name.to_owned(), package);
            }
        })
    }

    pub(crate) fn protected(mut self) -> Self {
        self.machine.nics = vec![nic(NicRole::Management)];
        self
    }

    /// A module of DKMS with a build per kernel, in this order of time.
    pub(crate) fn dkms(self, name: &str, kernels: &[(&str, i64)], failed: Option<&str>) -> Self {
        let build = |(kernel, built_at): &(&str, i64)| DkmsBuild {
            kernel: (*kernel).to_owned(),
            arch: "x86_64".to_owned(),
            installed: true,
            built_at: Fact::Known(*built_at),
        };
        let module = DkmsModule {
            name: name.to_owned(),
            version: "1.0".to_owned(),
            builds: kernels.iter().map(build).collect(),
            failed: failed.map(str::to_owned).into(),
        };
        self.with(|facts| {
            let mut modules = facts.install.dkms.fact.known().cloned().unwrap_or_default();
            modules.push(module);
            facts.install.dkms = found(modules);
        })
    }

    pub(crate) fn next_kernel(self, release: &str) -> Self {
        let release = Fact::Known(release.to_owned());
        self.with(|facts| facts.install.boot.next_kernel = release)
    }
}
