//! Writes the CRDs beside the crate, or with `--check` says whether they are in sync.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use thiserror::Error;

const USAGE: &str = "usage: crdgen [--check]";

#[derive(Debug, Error)]
enum CrdgenError {
    #[error("unknown argument {0:?}; {USAGE}")]
    Argument(String),
    #[error("cannot render a definition as YAML")]
    Render(#[from] serde_yaml::Error),
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} differs from the types in crds/src: run `cargo run -p crds --bin crdgen` and commit it", .0.display())]
    Stale(PathBuf),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crdgen: {error}{}", cause(&error));
            ExitCode::FAILURE
        }
    }
}

fn cause(error: &dyn std::error::Error) -> String {
    error
        .source()
        .map_or_else(String::new, |source| format!(": {source}"))
}

fn run() -> Result<(), CrdgenError> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let step = match arguments.as_slice() {
        [] => write,
        [flag] if flag == "--check" => check,
        [other, ..] => return Err(CrdgenError::Argument(other.clone())),
    };
    for crd in crds::crds() {
        let (name, content) = crds::crd::file(&crd)?;
        step(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name), &content)?;
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<(), CrdgenError> {
    fs::write(path, content).map_err(|source| CrdgenError::Write {
        path: path.to_owned(),
        source,
    })
}

/// A file that cannot be read is as stale as one that differs.
fn check(path: &Path, content: &str) -> Result<(), CrdgenError> {
    match fs::read_to_string(path) {
        Ok(committed) if committed == content => Ok(()),
        _ => Err(CrdgenError::Stale(path.to_owned())),
    }
}
