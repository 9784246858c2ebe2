//! Which node files the plugin takes. Pure, but for [`Source`], which reads the file and the host's boot id.
//!
//! What was read becomes a [`Reading`]; [`crate::knowledge`] decides what follows from it.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use prost::Message;
use topology::node_file::{NodeDevice, NodeFile, NodeResource};

use crate::{proto, resource};

/// Outcome of looking for the node file.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// A file of this boot.
    Good(Box<NodeFile>),
    /// There is none.
    Gone,
    /// It was written on another boot.
    OtherBoot {
        /// Boot id in the file.
        file: String,
        /// Boot id of the host.
        host: String,
    },
    /// Nothing follows from it: unreadable, unparsable or impossible to advertise.
    Unusable(String),
}

/// A node file that cannot be advertised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNodeFile {
    /// Not an extended resource name.
    #[error(
        "resource `{0}`: not an extended resource name; write domain/name, such as rdma/gpudirect"
    )]
    Name(String),
    /// The same resource twice.
    #[error("resource `{0}` is there twice; give each resource one entry")]
    RepeatedResource(String),
    /// The same device twice.
    #[error("resource `{resource}`: device id `{id}` is there twice; ids name one device each")]
    RepeatedDevice {
        /// Resource.
        resource: String,
        /// Device id.
        id: String,
    },
    /// A device without id.
    #[error("resource `{0}`: a device has an empty id; use the GPU's UUID or its PCI address")]
    EmptyId(String),
    /// An RDMA device name that is a path.
    #[error(
        "resource `{resource}`, device `{id}`: `{rdma}` is no RDMA device name (as in /sys/class/infiniband)"
    )]
    RdmaName {
        /// Resource.
        resource: String,
        /// Device id.
        id: String,
        /// The name.
        rdma: String,
    },
    /// The kubelet would refuse the message.
    #[error(
        "resource `{resource}`: its list has {bytes} bytes, the kubelet takes {max}; lower `replicas`"
    )]
    TooLong {
        /// Resource.
        resource: String,
        /// Size of the encoded list.
        bytes: usize,
        /// The limit.
        max: usize,
    },
}

/// Checks what the kubelet, or the file system below `/sys`, would stumble over later.
pub fn validate(file: &NodeFile) -> Result<(), InvalidNodeFile> {
    let mut names = BTreeSet::new();
    for resource in &file.resources {
        if !names.insert(&resource.name) {
            return Err(InvalidNodeFile::RepeatedResource(resource.name.clone()));
        }
        validate_resource(resource)?;
    }
    Ok(())
}

fn validate_resource(resource: &NodeResource) -> Result<(), InvalidNodeFile> {
    if !is_extended_resource(&resource.name) {
        return Err(InvalidNodeFile::Name(resource.name.clone()));
    }
    let mut ids = BTreeSet::new();
    for device in &resource.devices {
        validate_device(resource, device)?;
        if !ids.insert(&device.id) {
            let (resource, id) = (resource.name.clone(), device.id.clone());
            return Err(InvalidNodeFile::RepeatedDevice { resource, id });
        }
    }
    validate_length(resource)
}

fn validate_device(resource: &NodeResource, device: &NodeDevice) -> Result<(), InvalidNodeFile> {
    if device.id.is_empty() {
        return Err(InvalidNodeFile::EmptyId(resource.name.clone()));
    }
    let is_path =
        |name: &str| name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']);
    match device.nics.iter().find(|nic| is_path(&nic.rdma)) {
        None => Ok(()),
        Some(nic) => Err(InvalidNodeFile::RdmaName {
            resource: resource.name.clone(),
            id: device.id.clone(),
            rdma: nic.rdma.clone(),
        }),
    }
}

/// Every device `Unhealthy` is the longest form of the list.
fn validate_length(spec: &NodeResource) -> Result<(), InvalidNodeFile> {
    let devices = spec
        .devices
        .iter()
        .map(|device| resource::entry(device, false))
        .collect();
    let bytes = proto::ListAndWatchResponse { devices }.encoded_len();
    let max = proto::MAX_MESSAGE_BYTES;
    if bytes > max {
        return Err(InvalidNodeFile::TooLong {
            resource: spec.name.clone(),
            bytes,
            max,
        });
    }
    Ok(())
}

/// The rules of `IsExtendedResourceName` in Kubernetes' `pkg/apis/core/v1/helper`: a qualified name outside
/// `kubernetes.io` that does not begin with `requests.`.
#[must_use]
pub fn is_extended_resource(name: &str) -> bool {
    let Some((domain, base)) = name.split_once('/') else {
        return false;
    };
    let native = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    // Quota prefixes the name: `requests.rdma/gpudirect` must be a qualified name too.
    !native
        && !name.starts_with("requests.")
        && is_subdomain(&format!("requests.{domain}"))
        && is_base(base)
}

fn is_subdomain(domain: &str) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |l: &str| bounded(l, lower, |b| lower(b) || b == b'-');
    domain.len() <= 253 && domain.split('.').all(label)
}

fn is_base(base: &str) -> bool {
    let alnum = |b: u8| b.is_ascii_alphanumeric();
    base.len() <= 63 && bounded(base, alnum, |b| alnum(b) || matches!(b, b'-' | b'_' | b'.'))
}

fn bounded(text: &str, end: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| end(*b))
        && bytes.last().is_some_and(|b| end(*b))
        && bytes.iter().all(|b| inner(*b))
}

/// What follows from the texts of the node file and of the boot id file.
#[must_use]
pub fn judge(text: &str, host_boot: &str) -> Reading {
    let file = match NodeFile::parse(text) {
        Ok(file) => file,
        Err(error) => return Reading::Unusable(chain(&error)),
    };
    let host = host_boot.trim();
    if file.boot_id.trim() != host {
        return Reading::OtherBoot {
            file: file.boot_id,
            host: host.to_owned(),
        };
    }
    match validate(&file) {
        Ok(()) => Reading::Good(Box::new(file)),
        Err(error) => Reading::Unusable(error.to_string()),
    }
}

/// An error with its sources, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// Where the node file and the host's boot id are.
#[derive(Clone, Debug)]
pub struct Source {
    /// The node file; its directory is mounted, so that a rename is seen.
    pub node_file: PathBuf,
    /// The host's `/proc/sys/kernel/random/boot_id`: a container's own `/proc` may show another.
    pub boot_id_file: PathBuf,
}

/// What the two files hold; judged only when it changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// Both were read.
    Texts {
        /// Content of the node file.
        file: String,
        /// Content of the boot id file.
        boot: String,
    },
    /// There is no node file.
    Gone,
    /// One could not be read.
    Unreadable(String),
}

impl Raw {
    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Reading {
        match self {
            Self::Texts { file, boot } => judge(file, boot),
            Self::Gone => Reading::Gone,
            Self::Unreadable(why) => Reading::Unusable(why.clone()),
        }
    }
}

impl Source {
    /// Reads both files.
    #[must_use]
    pub fn fetch(&self) -> Raw {
        let file = match std::fs::read_to_string(&self.node_file) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Raw::Gone,
            Err(error) => return unreadable(&self.node_file, &error),
        };
        match std::fs::read_to_string(&self.boot_id_file) {
            Ok(boot) => Raw::Texts { file, boot },
            Err(error) => unreadable(&self.boot_id_file, &error),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Raw {
    Raw::Unreadable(format!("read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
