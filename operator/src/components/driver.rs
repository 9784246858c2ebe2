//! The driver container of one cluster, for `driver.source: Container`. It restarts the RDMA stack when it starts, so
//! it runs only on nodes whose label came with a grant, and its pods are replaced one grant at a time (`OnDelete`).
//! Mounts and probes follow what NVIDIA's DOCA driver container expects of its host.

use std::collections::BTreeMap;

use crds::cluster::DriverContainer;
use crds::names::DRIVER_LABEL;
use k8s_openapi::api::apps::v1::DaemonSetUpdateStrategy;
use k8s_openapi::api::core::v1::{Container, ExecAction, PodSpec, Probe, SecurityContext};

use super::pod::{HostMount, mounted, pull_secrets, tolerate_everything, variable};
use super::{Component, DRIVER_ROLE, Inputs, driver_name};
use crate::validate::Cluster;

/// Unloading the modules takes longer than a pod's usual thirty seconds.
const UNLOAD_SECONDS: i64 = 300;

pub(super) fn component(inputs: &Inputs<'_>, cluster: &Cluster) -> Option<Component> {
    let driver = cluster.driver.as_ref()?;
    let (volumes, mounts) = mounted(&host_paths());
    let label = vec![(DRIVER_LABEL, cluster.name.clone())];
    let pod = PodSpec {
        service_account_name: Some(inputs.config.plugin.service_account.clone()),
        automount_service_account_token: Some(false),
        node_selector: Some(
            label
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.clone()))
                .collect(),
        ),
        host_network: Some(true),
        priority_class_name: Some(inputs.config.priority_class_name.clone()),
        image_pull_secrets: pull_secrets(
            inputs
                .config
                .image_pull_secrets
                .iter()
                .chain(&driver.image_pull_secrets),
        ),
        tolerations: Some(tolerate_everything()),
        termination_grace_period_seconds: Some(UNLOAD_SECONDS),
        containers: vec![Container {
            volume_mounts: Some(mounts),
            ..container(driver)
        }],
        volumes: Some(volumes),
        ..PodSpec::default()
    };
    let strategy = DaemonSetUpdateStrategy {
        type_: Some("OnDelete".to_owned()),
        rolling_update: None,
    };
    Some(Component {
        name: driver_name(&cluster.name),
        role: DRIVER_ROLE,
        labels: label,
        strategy,
        pod,
    })
}

fn host_paths() -> [HostMount<'static>; 6] {
    let plain = |name, host, container, kind| HostMount {
        name,
        host,
        container,
        kind,
        writable: true,
        propagation: None,
    };
    [
        HostMount {
            propagation: Some("Bidirectional"),
            ..plain(
                "run-mlnx-ofed",
                "/run/mellanox/drivers",
                "/run/mellanox/drivers",
                "DirectoryOrCreate",
            )
        },
        plain(
            "etc-network",
            "/etc/network",
            "/etc/network",
            "DirectoryOrCreate",
        ),
        plain("host-etc", "/etc", "/host/etc", "Directory"),
        plain("host-usr", "/usr", "/host/usr", "Directory"),
        plain("host-udev", "/lib/udev", "/host/lib/udev", "Directory"),
        plain(
            "host-lib-modules",
            "/lib/modules",
            "/host/lib/modules",
            "Directory",
        ),
    ]
}

fn container(driver: &DriverContainer) -> Container {
    let env: &BTreeMap<String, String> = &driver.env;
    Container {
        name: "driver".to_owned(),
        image: Some(image(driver)),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        env: (!env.is_empty()).then(|| {
            env.iter()
                .map(|(name, value)| variable(name, value))
                .collect()
        }),
        security_context: Some(SecurityContext {
            privileged: Some(true),
            ..SecurityContext::default()
        }),
        // Up to twenty minutes: without a precompiled image the driver is built on the node.
        startup_probe: Some(Probe {
            failure_threshold: Some(120),
            ..probe("test -e /.driver-ready", 10)
        }),
        readiness_probe: Some(probe("grep -q ^mlx5_core /proc/modules", 30)),
        ..Container::default()
    }
}

/// `repository/image:version`, or `@` before a digest.
fn image(driver: &DriverContainer) -> String {
    let separator = if driver.version.starts_with("sha256:") {
        '@'
    } else {
        ':'
    };
    format!(
        "{}/{}{separator}{}",
        driver.repository.trim_end_matches('/'),
        driver.image,
        driver.version
    )
}

fn probe(script: &str, period: i32) -> Probe {
    let command = ["sh", "-c", script].map(ToOwned::to_owned).to_vec();
    Probe {
        exec: Some(ExecAction {
            command: Some(command),
        }),
        period_seconds: Some(period),
        ..Probe::default()
    }
}
