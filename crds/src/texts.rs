//! The second check of the texts in a node's configuration, for those who act on it; the rules in the CRDs are the
//! first. An object that was stored under older CRDs, or past them, is caught here. Pure; operator and agent check alike.
//!
//! Left out is what the agent turns into types of its own: `driver.modules`, `driver.openibConf` and
//! `driver.hostPackages`.

use std::net::IpAddr;

use crate::cluster::DriverContainer;
use crate::fabric::NicMatch;
use crate::node::NodeConfig;

/// A text that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value:?}: {remedy}")]
pub struct WrongText {
    /// The field, below `spec` of the cluster.
    pub field: String,
    /// What it is.
    pub value: String,
    /// What to write instead.
    pub remedy: &'static str,
}

/// Every text that is not taken, in the order of the fields.
#[must_use]
pub fn wrong_texts(config: &NodeConfig) -> Vec<WrongText> {
    let mut wrong = Wrong(Vec::new());
    if let Some(container) = &config.driver.container {
        wrong.container(container);
    }
    for (index, rule) in config.nics.iter().enumerate() {
        wrong.nic(&format!("nics[{index}].match"), &rule.matches);
    }
    for (index, rule) in config.fabric.rails.iter().enumerate() {
        wrong.nic(&format!("fabric.rails[{index}].match"), &rule.matches);
    }
    for (index, range) in config.fabric.addresses.iter().enumerate() {
        let field = format!("fabric.addresses[{index}].cidr");
        wrong.unless(is_network(&range.cidr), field, &range.cidr, NETWORK);
    }
    for (index, class) in config.fabric.traffic_classes.iter().enumerate() {
        let field = format!("fabric.trafficClasses[{index}].name");
        wrong.unless(is_word(&class.name, "._-"), field, &class.name, NAME);
    }
    for (index, resource) in config.device_plugin.resources.iter().enumerate() {
        let field = format!("devicePlugin.resources[{index}].name");
        let good = is_resource_name(&resource.name);
        wrong.unless(good, field, &resource.name, RESOURCE);
    }
    for (index, rail) in config.rails.iter().enumerate() {
        let field = format!("rails[{index}].pci");
        wrong.unless(is_pci(&rail.pci), field, &rail.pci, PCI);
    }
    for (index, given) in config.addresses.iter().enumerate() {
        let field = format!("addresses[{index}].address");
        wrong.unless(is_network(&given.address), field, &given.address, NETWORK);
    }
    wrong.0
}

const NAME: &str = "write letters, digits and . _ - only, beginning with a letter or digit";
const NETWORK: &str = "write address/prefix length, such as 10.10.0.0/16 or fd00:10::/64";
const RESOURCE: &str = "write domain/name, such as rdma/gpudirect";
const PCI: &str =
    "write lower-case domain:bus:device.function, such as 0000:0c:00.0; a match may end in *";
const REPOSITORY: &str = "write host[:port]/path without https://, such as nvcr.io/nvidia/mellanox";
const VARIABLE: &str = "write letters, digits and _ only, not beginning with a digit";
const ENVIRONMENT: &str = "write letters, digits, blanks and _ . , : / @ % + = ~ * - only, not beginning with - or a blank: the driver container's scripts read it";

struct Wrong(Vec<WrongText>);

impl Wrong {
    fn unless(&mut self, good: bool, field: impl Into<String>, value: &str, remedy: &'static str) {
        if !good {
            self.0.push(WrongText {
                field: field.into(),
                value: value.to_owned(),
                remedy,
            });
        }
    }

    fn container(&mut self, container: &DriverContainer) {
        let DriverContainer {
            repository,
            image,
            version,
            precompiled: _,
            env,
            image_pull_secrets,
        } = container;
        let field = |name: &str| format!("driver.container.{name}");
        let good = is_word(repository, "./:_-");
        self.unless(good, field("repository"), repository, REPOSITORY);
        self.unless(is_word(image, "._-"), field("image"), image, NAME);
        let tag = version.strip_prefix('_').unwrap_or(version);
        let digest = version.strip_prefix("sha256:").unwrap_or(tag);
        let good = is_word(digest, "._-");
        self.unless(good, field("version"), version, NAME);
        for (name, value) in env {
            let begins = !name.starts_with(|first: char| first.is_ascii_digit());
            let good = begins && !name.is_empty() && has_only(name, "_");
            self.unless(good, field("env"), name, VARIABLE);
            let good = !value.starts_with(['-', ' ']) && has_only(value, "_.,:/@%+=~* -");
            self.unless(good, field(&format!("env.{name}")), value, ENVIRONMENT);
        }
        for (index, name) in image_pull_secrets.iter().enumerate() {
            let field = field(&format!("imagePullSecrets[{index}]"));
            self.unless(is_word(name, ".-"), field, name, NAME);
        }
    }

    fn nic(&mut self, field: &str, wanted: &NicMatch) {
        let pattern = |text: &str| {
            let name = text.strip_suffix('*').unwrap_or(text);
            has_only(name, "._-") && !name.starts_with('-')
        };
        if let Some(pci) = &wanted.pci {
            let name = pci.strip_suffix('*').unwrap_or(pci);
            self.unless(is_pci(name), format!("{field}.pci"), pci, PCI);
        }
        if let Some(netdev) = &wanted.netdev {
            self.unless(pattern(netdev), format!("{field}.netdev"), netdev, NAME);
        }
        if let Some(rdma) = &wanted.rdma {
            self.unless(pattern(rdma), format!("{field}.rdma"), rdma, NAME);
        }
    }
}

/// Whether a text can name an extended resource: nothing that a path or an option could be made of.
#[must_use]
pub fn is_resource_name(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(domain, name)| is_word(domain, ".-") && is_word(name, "._-"))
}

/// ASCII letters, digits and the others.
fn has_only(text: &str, others: &str) -> bool {
    text.chars()
        .all(|one| one.is_ascii_alphanumeric() || others.contains(one))
}

/// The same, beginning with a letter or digit.
fn is_word(text: &str, others: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && has_only(text, others)
}

fn is_pci(text: &str) -> bool {
    text.chars()
        .all(|one| matches!(one, '0'..='9' | 'a'..='f' | ':' | '.'))
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let longest = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= longest)
}
