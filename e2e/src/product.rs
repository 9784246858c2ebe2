//! The product's images as archives, from the list in the chart's `images.yaml` that the Containerfile follows too.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::image::Image;
use crate::{cmd, paths, progress, rootfs};

/// The tag that the local cluster uses.
pub const TAG: &str = "local";

/// How the product is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Quickly, for tests and the demo.
    Ci,
    /// As it is shipped, for figures.
    Release,
}

impl Profile {
    /// Name of the cargo profile, and of its folder below the target folder.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ci => "ci",
            Self::Release => "release",
        }
    }
}

/// `charts/images.yaml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageList {
    /// The images.
    pub images: Vec<ImageEntry>,
}

/// One image of the product.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageEntry {
    /// Image name.
    pub name: String,
    /// Program, built from the crate of the same name.
    pub binary: String,
    /// `debian` or `scratch`; a program for `scratch` is linked statically.
    pub base: Base,
    /// Debian packages of the root file system.
    #[serde(default)]
    pub packages: Vec<String>,
}

/// What an image stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// A Debian root file system with the listed packages.
    Debian,
    /// Nothing.
    Scratch,
}

/// Reads the list.
pub fn list() -> Result<ImageList> {
    let path = paths::repository().join("charts/images.yaml");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    serde_yaml::from_str(&text).with_context(|| format!("understand {}", path.display()))
}

/// Builds every image that the cluster needs into a folder.
pub fn images(folder: &Path, profile: Profile) -> Result<()> {
    let list = list()?;
    programs(&list, profile)?;
    for entry in &list.images {
        product_image(entry, profile)?.write(&folder.join(format!("{}.tar", entry.name)))?;
    }
    for reference in ["localhost/pause:1", "localhost/busybox:1"] {
        let name = reference.trim_start_matches("localhost/").replace(':', "-");
        busybox(reference).write(&folder.join(format!("{name}.tar")))?;
    }
    Ok(())
}

/// Builds every program of the images.
pub fn programs(list: &ImageList, profile: Profile) -> Result<()> {
    let what = format!("build the product (profile {})", profile.name());
    progress::step(&what, || build(list, profile))
}

fn product_image(entry: &ImageEntry, profile: Profile) -> Result<Image> {
    let base = match entry.base {
        Base::Debian => Some(rootfs::debian(&entry.packages)?),
        Base::Scratch => None,
    };
    let path = format!("/usr/bin/{}", entry.binary);
    Ok(Image {
        reference: format!("localhost/{}:{TAG}", entry.name),
        entrypoint: vec![path.clone()],
        base,
        files: vec![(path, binary(&entry.binary, profile))],
        links: Vec::new(),
    })
}

/// Pods of the scenarios, and the sandbox, which only has to stay: one static program with its names as links.
fn busybox(reference: &str) -> Image {
    let names = [
        "sh", "ls", "cat", "env", "sleep", "stat", "id", "find", "sort", "head", "true", "wget",
    ];
    let entrypoint = if reference.contains("pause") {
        vec!["/bin/sleep".into(), "2147483647".into()]
    } else {
        vec!["/bin/sh".into()]
    };
    Image {
        reference: reference.to_owned(),
        entrypoint,
        base: None,
        files: vec![("/bin/busybox".into(), "/usr/bin/busybox".into())],
        links: names
            .iter()
            .map(|name| (format!("/bin/{name}"), "busybox".to_owned()))
            .collect(),
    }
}

/// One call for all programs that link dynamically, so that their dependencies are built once.
fn build(list: &ImageList, profile: Profile) -> Result<()> {
    let (dynamic, fixed): (Vec<_>, Vec<_>) = list
        .images
        .iter()
        .partition(|entry| entry.base == Base::Debian);
    let mut command = cargo();
    command.args(["build", "--profile", profile.name(), "--bins"]);
    if profile == Profile::Ci {
        command.args(["-p", "e2e"]);
    }
    for entry in dynamic {
        command.args(["-p", &entry.binary]);
    }
    cmd::run(&mut command)?;
    fixed
        .into_iter()
        .try_for_each(|entry| link_statically(&entry.binary, &entry.binary, profile))
}

/// A program of the product, once it is built.
#[must_use]
pub fn binary(name: &str, profile: Profile) -> PathBuf {
    target().join(profile.name()).join(name)
}

/// Builds a program of a package as those are built that stand on nothing.
pub fn link_statically(package: &str, program: &str, profile: Profile) -> Result<()> {
    let mut command = cargo();
    command.args([
        "rustc",
        "--profile",
        profile.name(),
        "-p",
        package,
        "--bin",
        program,
    ]);
    cmd::run(command.args(["--", "-C", "target-feature=+crt-static"]))
}

/// The program of this crate: a test runs as another one, and the supervisor has to be a program of its own.
pub fn own_binary() -> Result<PathBuf> {
    let mut command = cargo();
    cmd::run(command.args(["build", "--profile", "ci", "-p", "e2e", "--bin", "e2e"]))?;
    Ok(binary("e2e", Profile::Ci))
}

/// Without what an outer `cargo run` says of its own package: build scripts that look at it (ring's) would run again, and
/// whatever depends on them would be built again, at each change between the two.
fn cargo() -> Command {
    let mut command = cmd::command("cargo", ["--locked"]);
    command.current_dir(paths::repository());
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| OUTER.iter().any(|prefix| name.starts_with(prefix))) {
        command.env_remove(name);
    }
    command
}

/// Prefixes of what cargo sets for the programs that it runs:
/// <https://doc.rust-lang.org/cargo/reference/environment-variables.html#environment-variables-cargo-sets-for-crates>.
const OUTER: [&str; 4] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_BIN_",
    "CARGO_CRATE_",
];

/// Cargo's target folder.
#[must_use]
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| paths::repository().join("target"), PathBuf::from)
}
