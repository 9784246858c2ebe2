//! The programs of the cluster, built from pinned Go modules into the cache: `tools/<name>-<hash of go.mod, go.sum and flags>/`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{cmd, paths, progress};

struct Module {
    /// Folder below `e2e/tools`. Programs of one module share the packages that they have in common.
    name: &'static str,
    packages: &'static [&'static str],
    tags: &'static str,
    ldflags: &'static str,
    cgo: bool,
}

/// Without helm's part it takes the cluster that it renders for without a server to be version 1.20.
const KUBERNETES_LDFLAGS: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
    -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36 \
    -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36 \
    -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=36";

const MODULES: &[Module] = &[
    Module {
        name: "kubernetes",
        packages: &[
            "./etcd",
            "github.com/containerd/containerd/v2/cmd/containerd",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            "github.com/containerd/containerd/v2/cmd/ctr",
            "helm.sh/helm/v3/cmd/helm",
            "k8s.io/kubernetes/cmd/kube-apiserver",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-proxy",
            "k8s.io/kubernetes/cmd/kube-scheduler",
            "k8s.io/kubernetes/cmd/kubectl",
            "k8s.io/kubernetes/cmd/kubelet",
        ],
        tags: "no_btrfs no_devmapper no_zfs no_aufs",
        ldflags: KUBERNETES_LDFLAGS,
        cgo: false,
    },
    // Without the seccomp tag every pod fails with "seccomp not supported".
    Module {
        name: "runc",
        packages: &["github.com/opencontainers/runc"],
        tags: "seccomp",
        ldflags: "-s -w",
        cgo: true,
    },
];

/// Folders with the programs, in the order of a `PATH`; builds what is missing.
pub fn folders() -> Result<Vec<PathBuf>> {
    require_go()?;
    MODULES.iter().map(folder).collect()
}

/// `PATH` with the programs first and the system's folders after.
pub fn search_path() -> Result<String> {
    let folders = folders()?;
    let own = folders.iter().map(|folder| folder.display().to_string());
    let system = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(str::to_owned);
    Ok(own.chain(system).collect::<Vec<_>>().join(":"))
}

fn require_go() -> Result<()> {
    let Ok(version) = cmd::output(&mut cmd::command("go", ["env", "GOVERSION"])) else {
        bail!("Go is missing: install Go 1.26 or newer and put it on the PATH");
    };
    let minor = version
        .trim()
        .strip_prefix("go1.")
        .and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    match minor {
        Some(minor) if minor < 26 => {
            bail!("{} is too old: install Go 1.26 or newer", version.trim())
        }
        _ => Ok(()),
    }
}

fn folder(module: &Module) -> Result<PathBuf> {
    let source = paths::repository().join("e2e/tools").join(module.name);
    let folder =
        paths::cache()?
            .join("tools")
            .join(format!("{}-{}", module.name, key(module, &source)?));
    if !folder.exists() {
        progress::step(&format!("build {} from source", module.name), || {
            build(module, &source, &folder)
        })?;
    }
    Ok(folder)
}

fn key(module: &Module, source: &Path) -> Result<String> {
    let mut content = Vec::new();
    for file in ["go.mod", "go.sum"] {
        let path = source.join(file);
        content.extend(std::fs::read(&path).with_context(|| format!("read {}", path.display()))?);
    }
    content.extend(module.packages.concat().bytes());
    content.extend(module.tags.bytes());
    content.extend(module.ldflags.bytes());
    Ok(paths::sha256(content)[..12].to_owned())
}

/// Builds into a folder beside the final one, so that an interrupted build leaves nothing that looks done.
fn build(module: &Module, source: &Path, folder: &Path) -> Result<()> {
    let part = folder.with_extension("part");
    std::fs::create_dir_all(&part).with_context(|| format!("create {}", part.display()))?;
    let target = format!("{}/", part.display());
    let mut command = cmd::command(
        "go",
        [
            "build",
            "-trimpath",
            // The linker drops DWARF anyway; compiling without inlining takes a sixth less.
            "-gcflags=all=-dwarf=false -l",
            "-tags",
            module.tags,
            "-ldflags",
            module.ldflags,
            "-o",
            &target,
        ],
    );
    command
        .args(module.packages)
        .current_dir(source)
        // The compiler's collector costs a tenth of the time; it may use more memory instead.
        .env("GOGC", "400")
        .env("CGO_ENABLED", if module.cgo { "1" } else { "0" });
    cmd::run(&mut command)?;
    std::fs::rename(&part, folder)
        .with_context(|| format!("rename {} to {}", part.display(), folder.display()))
}
