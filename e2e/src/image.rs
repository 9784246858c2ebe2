//! OCI image archives from files and root file systems: what `containerd` imports, without Docker.
//!
//! Layout after the OCI image specification 1.1 (`oci-layout`, `index.json`, `blobs/sha256/…`).

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::paths;

/// What one image is made of.
pub struct Image {
    /// Full reference, `localhost/gpu-rdma-operator:0.1.0`.
    pub reference: String,
    /// Entry point.
    pub entrypoint: Vec<String>,
    /// A tar archive with the root file system below everything else.
    pub base: Option<PathBuf>,
    /// Files: path in the image, path here.
    pub files: Vec<(String, PathBuf)>,
    /// Symbolic links: path in the image, target.
    pub links: Vec<(String, String)>,
}

struct Blob {
    bytes: Vec<u8>,
    digest: String,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        let digest = paths::sha256(&bytes);
        Self {
            bytes,
            digest: format!("sha256:{digest}"),
        }
    }

    fn json(value: &Value) -> Self {
        Self::new(value.to_string().into_bytes())
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": format!("application/vnd.oci.image.{media_type}"), "digest": self.digest, "size": self.bytes.len()})
    }
}

impl Image {
    /// Writes the archive.
    pub fn write(&self, archive: &Path) -> Result<()> {
        let mut layers = Vec::new();
        if let Some(base) = &self.base {
            layers.push(Blob::new(
                std::fs::read(base).with_context(|| format!("read {}", base.display()))?,
            ));
        }
        layers.push(Blob::new(self.files_layer()?));
        let config = Blob::json(&json!({
            "architecture": "amd64", "os": "linux",
            "config": {"Entrypoint": self.entrypoint, "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|layer| layer.digest.clone()).collect::<Vec<_>>()},
        }));
        let manifest = Blob::json(&json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor("config.v1+json"),
            "layers": layers.iter().map(|layer| layer.descriptor("layer.v1.tar")).collect::<Vec<_>>(),
        }));
        let mut entry = manifest.descriptor("manifest.v1+json");
        entry["annotations"] = json!({"io.containerd.image.name": self.reference});
        let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]});
        layers.extend([config, manifest]);
        write_archive(archive, &index, &layers)
    }

    fn files_layer(&self) -> Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, source) in &self.files {
            let bytes =
                std::fs::read(source).with_context(|| format!("read {}", source.display()))?;
            append(&mut tar, path, 0o755, &bytes)?;
        }
        for (path, target) in &self.links {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            header.set_mode(0o777);
            tar.append_link(&mut header, path.trim_start_matches('/'), target)
                .with_context(|| format!("link {path}"))?;
        }
        tar.into_inner().context("finish the layer")
    }
}

fn write_archive(archive: &Path, index: &Value, blobs: &[Blob]) -> Result<()> {
    let file = File::create(archive).with_context(|| format!("create {}", archive.display()))?;
    let mut tar = tar::Builder::new(file);
    append(
        &mut tar,
        "oci-layout",
        0o644,
        br#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    append(&mut tar, "index.json", 0o644, index.to_string().as_bytes())?;
    for blob in blobs {
        append(
            &mut tar,
            &format!("blobs/{}", blob.digest.replace(':', "/")),
            0o644,
            &blob.bytes,
        )?;
    }
    tar.finish()
        .with_context(|| format!("finish {}", archive.display()))
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    tar.append_data(
        &mut header,
        path.trim_start_matches('/'),
        Cursor::new(bytes),
    )
    .with_context(|| format!("add {path}"))
}
