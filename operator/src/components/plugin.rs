//! The device plugin: no capabilities, no token, a read-only root; it reads the node file and talks to the kubelet.

use std::collections::BTreeMap;

use crds::names::PLUGIN_LABEL;
use k8s_openapi::api::core::v1::{
    Capabilities, Container, PodSpec, SeccompProfile, SecurityContext,
};

use super::pod::{HostMount, below, mounted, pull_secrets, rolling, tolerate_everything, variable};
use super::{Component, Inputs, PLUGIN, PLUGIN_ROLE};
use crate::config::Config;

pub(super) fn component(inputs: &Inputs<'_>) -> Component {
    let config = inputs.config;
    let socket_directory = below(&config.kubelet_root, "device-plugins");
    let (volumes, mounts) = mounted(&host_paths(&socket_directory));
    let container = Container {
        volume_mounts: Some(mounts),
        ..container(config, &socket_directory)
    };
    let pod = PodSpec {
        service_account_name: Some(config.plugin.service_account.clone()),
        automount_service_account_token: Some(false),
        node_selector: Some(BTreeMap::from([(
            PLUGIN_LABEL.to_owned(),
            "true".to_owned(),
        )])),
        priority_class_name: Some(config.priority_class_name.clone()),
        image_pull_secrets: pull_secrets(&config.image_pull_secrets),
        tolerations: Some(tolerate_everything()),
        containers: vec![container],
        volumes: Some(volumes),
        ..PodSpec::default()
    };
    Component {
        name: PLUGIN.to_owned(),
        role: PLUGIN_ROLE,
        labels: Vec::new(),
        strategy: rolling(),
        pod,
    }
}

/// `/run/gpurdma` is mounted as a directory, so that a node file renamed into it is seen; the boot id is the host's,
/// which a container's own `/proc` would hide in some sandboxes.
fn host_paths(socket_directory: &str) -> [HostMount<'_>; 5] {
    let read_only = |name, host, container, kind| HostMount {
        name,
        host,
        container,
        kind,
        writable: false,
        propagation: None,
    };
    [
        read_only(
            "gpurdma",
            "/run/gpurdma",
            "/run/gpurdma",
            "DirectoryOrCreate",
        ),
        read_only("sys", "/sys", "/host/sys", "Directory"),
        read_only("dev", "/dev", "/host/dev", "Directory"),
        HostMount {
            name: "device-plugins",
            host: socket_directory,
            container: socket_directory,
            kind: "Directory",
            writable: true,
            propagation: None,
        },
        read_only(
            "boot-id",
            "/proc/sys/kernel/random/boot_id",
            "/run/host/boot_id",
            "File",
        ),
    ]
}

fn container(config: &Config, socket_directory: &str) -> Container {
    let fixed = [
        "serve",
        "--root",
        "/host",
        "--node-file",
        "/run/gpurdma/node.json",
        "--boot-id-file",
        "/run/host/boot_id",
        "--kubelet-dir",
        socket_directory,
    ];
    Container {
        name: "device-plugin".to_owned(),
        image: Some(config.plugin.image.clone()),
        image_pull_policy: Some(config.plugin.image_pull_policy.clone()),
        args: Some(fixed.map(ToOwned::to_owned).to_vec()),
        env: Some(vec![variable("RUST_LOG", &config.plugin.log_level)]),
        resources: config.plugin.resources.requirements(),
        security_context: Some(unprivileged()),
        ..Container::default()
    }
}

/// uid 0, because the kubelet's directory belongs to it; nothing else of root's.
fn unprivileged() -> SecurityContext {
    SecurityContext {
        run_as_user: Some(0),
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..SecurityContext::default()
    }
}
