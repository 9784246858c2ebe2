//! The CRDs of other projects that our examples are written for, from pinned Go modules into the cache:
//! `schemas/<hash of the pins>/`. They are big and not ours, so they are not in this repository.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::{cmd, paths, progress};

/// A module at a version whose content is known.
struct Pin {
    module: &'static str,
    version: &'static str,
    /// What `go.sum` has for the module's content (<https://go.dev/ref/mod#go-sum-files>).
    sum: &'static str,
    files: &'static [&'static str],
}

/// As the projects generate them: a conversion webhook is added later, when they are installed, so there is none to call.
const PINS: &[Pin] = &[
    Pin {
        module: "sigs.k8s.io/kueue",
        version: "v0.17.0",
        sum: "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=",
        files: &[
            "config/components/crd/bases/kueue.x-k8s.io_clusterqueues.yaml",
            "config/components/crd/bases/kueue.x-k8s.io_localqueues.yaml",
            "config/components/crd/bases/kueue.x-k8s.io_resourceflavors.yaml",
        ],
    },
    Pin {
        module: "sigs.k8s.io/jobset",
        version: "v0.11.1",
        sum: "h1:WgLEBnXTeX+4MxfVkIbfm4jIVgjvIY6Jfaei2okxKNk=",
        files: &["config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"],
    },
    Pin {
        module: "github.com/kubeflow/mpi-operator",
        version: "v0.8.0",
        sum: "h1:22EccUiO4VDooG4TooesdE8o8euGVj89PIRhiP24SRE=",
        files: &["manifests/base/kubeflow.org_mpijobs.yaml"],
    },
    Pin {
        module: "github.com/kubeflow/training-operator",
        version: "v1.9.3",
        sum: "h1:aaSHqskOtCY8Dn8sVd+l9p5XAczW6O0nYMPjVLAw/lc=",
        files: &["manifests/base/crds/kubeflow.org_pytorchjobs.yaml"],
    },
];

/// What `go mod download -json` says.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
    sum: String,
}

/// A folder with the CRDs; fetches them where they are not there yet.
pub fn folder() -> Result<PathBuf> {
    let folder = paths::cache()?.join("schemas").join(key());
    if !folder.exists() {
        progress::step("fetch the CRDs that the examples are for", || {
            fetch(&folder)
        })?;
    }
    Ok(folder)
}

fn key() -> String {
    let content = PINS
        .iter()
        .flat_map(|pin| [pin.sum].into_iter().chain(pin.files.iter().copied()));
    paths::sha256(content.collect::<String>())[..12].to_owned()
}

/// Into a folder beside the final one, so that what was interrupted leaves nothing that looks done.
fn fetch(folder: &Path) -> Result<()> {
    let part = folder.with_extension("part");
    std::fs::create_dir_all(&part).with_context(|| format!("create {}", part.display()))?;
    for pin in PINS {
        let source = download(pin, &part)?;
        for file in pin.files {
            let name = Path::new(file).file_name().context("a file has a name")?;
            let from = source.join(file);
            // Read and written: a copy would be as read-only as the module cache.
            let text = std::fs::read(&from).with_context(|| format!("read {}", from.display()))?;
            let to = part.join(name);
            std::fs::write(&to, text).with_context(|| format!("write {}", to.display()))?;
        }
    }
    std::fs::rename(&part, folder)
        .with_context(|| format!("rename {} to {}", part.display(), folder.display()))
}

/// Outside of any module, where a version that is named stands for itself alone.
fn download(pin: &Pin, outside: &Path) -> Result<PathBuf> {
    let wanted = format!("{}@{}", pin.module, pin.version);
    let mut command = cmd::command("go", ["mod", "download", "-json", &wanted]);
    command.current_dir(outside).env("GOWORK", "off");
    let text = cmd::output(&mut command)?;
    let Downloaded { dir, sum } = serde_json::from_str(&text)
        .with_context(|| format!("understand what go says of {wanted}"))?;
    ensure!(
        sum == pin.sum,
        "{wanted} has the checksum {sum}, expected {}",
        pin.sum
    );
    Ok(dir)
}
