//! A signed Debian repository of small packages, served over https on each node's own loopback, as a site would have one.
//!
//! Flat (`sources.list(5)`): the packages, `Packages`, and `InRelease`, which is signed with a key made for this cluster.
//! `openssl s_server -HTTP` serves files that hold a whole response; each is written with its header.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cluster::Cluster;
use crate::{cmd, paths, progress};

/// Where each node finds it.
pub const URL: &str = "https://127.0.0.1:8443";
const ADDRESS: &str = "127.0.0.1:8443";

/// A repository that stands in a cluster's work folder.
pub struct Repository {
    folder: PathBuf,
    /// The public key that signs it, armoured.
    pub key: String,
}

impl Repository {
    /// Makes a repository with a package `name` in these versions. Its installation says that it has begun in
    /// `/run/<name>-begun`, and takes half a minute while there is a `/run/<name>-slow`.
    pub fn make(cluster: &Cluster, name: &str, versions: &[&str]) -> Result<Self> {
        let folder = cluster.work().join("repository");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("served")).context("create the repository")?;
        let mut index = String::new();
        for version in versions {
            index.push_str(&package(&folder, name, version)?);
        }
        serve_as(&folder, "Packages", index.as_bytes())?;
        let key = sign(&folder, &index)?;
        certificate(&folder)?;
        Ok(Self { folder, key })
    }

    /// Serves it on a node, whose apt trusts the server's certificate from now on.
    pub fn serve(&self, cluster: &Cluster, node: &str) -> Result<()> {
        let folder = self.folder.display();
        let trust = format!(
            "echo 'Acquire::https::CaInfo \"{folder}/tls.crt\";' >/etc/apt/apt.conf.d/99-site-ca"
        );
        let server = format!(
            "cd {folder}/served && setsid openssl s_server -accept {ADDRESS} -cert ../tls.crt -key ../tls.key -HTTP >/run/repository.log 2>&1 </dev/null &"
        );
        cluster.on_node(node, ["sh", "-c", &format!("{trust} && {{ {server} }}")])?;
        let answers = || cluster.on_node(node, ["sh", "-c", "ss -Hltn sport = :8443 | grep -q ."]);
        progress::wait_for("the repository's server", 20, || answers().ok()).map(drop)
    }

    /// Ends the server on a node.
    pub fn end(cluster: &Cluster, node: &str) -> Result<()> {
        let server = format!("openssl s_server -accept {ADDRESS}");
        cluster.on_node(node, ["pkill", "-f", &server]).map(drop)
    }
}

/// Builds one package and returns its paragraph of the index.
fn package(folder: &Path, name: &str, version: &str) -> Result<String> {
    let (tree, file) = (folder.join("tree"), format!("{name}_{version}_all.deb"));
    std::fs::create_dir_all(tree.join("DEBIAN")).context("create a package's tree")?;
    let control = format!(
        "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: e2e <e2e@example.com>\nDescription: stands for an RDMA driver\n"
    );
    let script = format!(
        "#!/bin/sh\nset -e\ntouch /run/{name}-begun\nif [ -e /run/{name}-slow ]; then sleep 30; fi\n"
    );
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    write(&tree.join("DEBIAN/postinst"), script.as_bytes())?;
    cmd::exec("chmod", ["755", &shown(&tree.join("DEBIAN/postinst"))])?;
    let built = folder.join(&file);
    cmd::exec(
        "dpkg-deb",
        [
            "--build",
            "--root-owner-group",
            &shown(&tree),
            &shown(&built),
        ],
    )?;
    let bytes = std::fs::read(&built).with_context(|| format!("read {}", built.display()))?;
    serve_as(folder, &file, &bytes)?;
    let (size, hash) = (bytes.len(), paths::sha256(&bytes));
    Ok(format!(
        "{control}Filename: ./{file}\nSize: {size}\nSHA256: {hash}\n\n"
    ))
}

/// `InRelease`, signed with a new key; returns the public one.
fn sign(folder: &Path, index: &str) -> Result<String> {
    let home = shown(&folder.join("gnupg"));
    cmd::exec("install", ["-d", "-m", "700", &home])?;
    let gpg = |arguments: &[&str]| {
        let fixed = ["--homedir", &home, "--batch", "--quiet", "--passphrase", ""];
        cmd::output(&mut cmd::command("gpg", fixed.iter().chain(arguments)))
    };
    gpg(&[
        "--quick-generate-key",
        "e2e <e2e@example.com>",
        "ed25519",
        "sign",
        "never",
    ])?;
    let date = cmd::output(&mut cmd::command("date", ["-Ru"]))?;
    let (size, hash) = (index.len(), paths::sha256(index));
    let release = format!(
        "Origin: e2e\nLabel: e2e\nDate: {}\nSHA256:\n {hash} {size} Packages\n",
        date.trim()
    );
    let file = folder.join("Release");
    write(&file, release.as_bytes())?;
    let signed = gpg(&["--clearsign", "--output", "-", &shown(&file)])?;
    serve_as(folder, "InRelease", signed.as_bytes())?;
    let key = gpg(&["--armor", "--export"])?;
    cmd::exec("gpgconf", ["--homedir", &home, "--kill", "all"])?;
    Ok(key)
}

fn certificate(folder: &Path) -> Result<()> {
    let (key, crt) = (
        shown(&folder.join("tls.key")),
        shown(&folder.join("tls.crt")),
    );
    let request = [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
    ];
    let names = [
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ];
    let files = ["-keyout", &key, "-out", &crt];
    cmd::exec("openssl", request.iter().chain(&names).chain(&files))
}

fn serve_as(folder: &Path, name: &str, content: &[u8]) -> Result<()> {
    let length = content.len();
    let mut response =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
            .into_bytes();
    response.extend_from_slice(content);
    write(&folder.join("served").join(name), &response)
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    std::fs::write(path, content).with_context(|| format!("write {}", path.display()))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
