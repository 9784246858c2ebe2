//! `operator.yaml`: what the chart tells the operator. Pure; [`Config::load`] is the only read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Serialize};

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not what this version understands.
    #[error("cannot understand {}: check the field's name and type against the chart's values", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        #[source]
        source: serde_yaml::Error,
    },
    /// A field has a value that cannot work.
    #[error("{field} is {value:?}: {remedy}")]
    Value {
        /// Field, as in the file.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it should hold.
        remedy: &'static str,
    },
}

/// The operator's configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The node agent.
    pub agent: AgentConfig,
    /// The device plugin.
    pub plugin: PluginConfig,
    /// Pull secrets of agent and plugin.
    #[serde(default)]
    pub image_pull_secrets: Vec<String>,
    /// Priority class of every pod.
    #[serde(default = "default_priority_class")]
    pub priority_class_name: String,
    /// The kubelet's root directory on the nodes.
    #[serde(default = "default_kubelet_root")]
    pub kubelet_root: String,
    /// Where CDI specifications go on the nodes.
    #[serde(default = "default_cdi_dir")]
    pub cdi_dir: String,
    /// Proxy of the agent's downloads.
    #[serde(default)]
    pub proxy: Proxy,
    /// PCI vendors that count as GPUs, four hexadecimal digits each.
    #[serde(default = "default_gpu_vendors")]
    pub gpu_vendors: Vec<String>,
    /// Port of `/metrics`.
    #[serde(default = "default_metrics_port")]
    pub metrics_port: u16,
    /// Port of `/livez` and `/readyz`.
    #[serde(default = "default_health_port")]
    pub health_port: u16,
}

/// The node agent's container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentConfig {
    /// Image with tag or digest.
    pub image: String,
    /// Pull policy.
    #[serde(default = "default_pull_policy")]
    pub image_pull_policy: String,
    /// Service account.
    #[serde(default = "default_agent_account")]
    pub service_account: String,
    /// Requests and limits.
    #[serde(default)]
    pub resources: Resources,
    /// Log level: a `tracing` filter.
    #[serde(default = "default_log_level")]
    pub log_level: String,
    /// Arguments added at the end.
    #[serde(default)]
    pub extra_args: Vec<String>,
}

/// The device plugin's container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginConfig {
    /// Image with tag or digest.
    pub image: String,
    /// Pull policy.
    #[serde(default = "default_pull_policy")]
    pub image_pull_policy: String,
    /// Service account.
    #[serde(default = "default_plugin_account")]
    pub service_account: String,
    /// Requests and limits.
    #[serde(default)]
    pub resources: Resources,
    /// Log level: a `tracing` filter.
    #[serde(default = "default_log_level")]
    pub log_level: String,
}

/// Requests and limits of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resources {
    /// What the scheduler sets aside.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// What the container may use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

impl Resources {
    /// The same in Kubernetes' own type; none where nothing is set.
    #[must_use]
    pub fn requirements(&self) -> Option<ResourceRequirements> {
        let quantities = |map: &BTreeMap<String, String>| {
            (!map.is_empty()).then(|| {
                map.iter()
                    .map(|(name, value)| (name.clone(), Quantity(value.clone())))
                    .collect()
            })
        };
        let requirements = ResourceRequirements {
            requests: quantities(&self.requests),
            limits: quantities(&self.limits),
            ..ResourceRequirements::default()
        };
        (requirements != ResourceRequirements::default()).then_some(requirements)
    }
}

/// Proxy of the agent's downloads; an empty string is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Proxy {
    /// For `http://`.
    pub http_proxy: String,
    /// For `https://`.
    pub https_proxy: String,
    /// Hosts reached without a proxy.
    pub no_proxy: String,
}

impl Proxy {
    /// Environment variables, in the order of their names.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, &str)> {
        [
            ("HTTPS_PROXY", &self.https_proxy),
            ("HTTP_PROXY", &self.http_proxy),
            ("NO_PROXY", &self.no_proxy),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, value.as_str()))
        .collect()
    }
}

impl Config {
    /// Reads and checks the file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.into(),
            source,
        })?;
        let config: Self = serde_yaml::from_str(&text).map_err(|source| ConfigError::Parse {
            path: path.into(),
            source,
        })?;
        config.check()?;
        Ok(config)
    }

    /// Refuses what would only fail later, on every node.
    pub fn check(&self) -> Result<(), ConfigError> {
        let absolute = "give an absolute path on the node without '..'";
        check(
            is_clean_path(&self.kubelet_root),
            "kubeletRoot",
            &self.kubelet_root,
            absolute,
        )?;
        check(
            is_clean_path(&self.cdi_dir),
            "cdiDir",
            &self.cdi_dir,
            absolute,
        )?;
        for (field, image) in [
            ("agent.image", &self.agent.image),
            ("plugin.image", &self.plugin.image),
        ] {
            check(
                !image.trim().is_empty(),
                field,
                image,
                "give an image with a tag or a digest",
            )?;
        }
        let policies = "one of Always, IfNotPresent, Never";
        for (field, policy) in [
            ("agent.imagePullPolicy", &self.agent.image_pull_policy),
            ("plugin.imagePullPolicy", &self.plugin.image_pull_policy),
        ] {
            check(
                ["Always", "IfNotPresent", "Never"].contains(&policy.as_str()),
                field,
                policy,
                policies,
            )?;
        }
        for vendor in &self.gpu_vendors {
            check(
                is_vendor(vendor),
                "gpuVendors",
                vendor,
                "give four lower-case hexadecimal digits, such as 10de",
            )?;
        }
        let ports = format!("{} and healthPort {}", self.metrics_port, self.health_port);
        check(
            self.metrics_port != self.health_port,
            "metricsPort",
            &ports,
            "give two different ports",
        )
    }
}

fn check(
    holds: bool,
    field: &'static str,
    value: &str,
    remedy: &'static str,
) -> Result<(), ConfigError> {
    if holds {
        Ok(())
    } else {
        Err(ConfigError::Value {
            field,
            value: value.to_owned(),
            remedy,
        })
    }
}

fn is_clean_path(path: &str) -> bool {
    path.starts_with('/') && path.len() > 1 && !path.split('/').any(|part| part == "..")
}

fn is_vendor(vendor: &str) -> bool {
    vendor.len() == 4
        && vendor
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn default_priority_class() -> String {
    "system-node-critical".to_owned()
}

fn default_kubelet_root() -> String {
    "/var/lib/kubelet".to_owned()
}

fn default_cdi_dir() -> String {
    "/var/run/cdi".to_owned()
}

fn default_gpu_vendors() -> Vec<String> {
    vec!["10de".to_owned()]
}

const fn default_metrics_port() -> u16 {
    8080
}

const fn default_health_port() -> u16 {
    8081
}

fn default_pull_policy() -> String {
    "IfNotPresent".to_owned()
}

fn default_agent_account() -> String {
    "gpu-rdma-agent".to_owned()
}

fn default_plugin_account() -> String {
    "gpu-rdma-plugin".to_owned()
}

fn default_log_level() -> String {
    "info".to_owned()
}

#[cfg(test)]
mod tests;
