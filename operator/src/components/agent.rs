//! The node agent: privileged, in the host's network and process namespaces, with the host's root at `/host`.

use k8s_openapi::api::core::v1::{Container, PodSpec, SecurityContext};

use super::pod::{
    HostMount, mounted, node_ips, node_name, pull_secrets, rolling, tolerate_everything, variable,
};
use super::{AGENT, Component, Inputs, affinity};
use crate::config::Config;

pub(super) fn component(inputs: &Inputs<'_>) -> Component {
    let config = inputs.config;
    let root = HostMount {
        name: "host",
        host: "/",
        container: "/host",
        kind: "Directory",
        writable: true,
        propagation: Some("HostToContainer"),
    };
    let (volumes, mounts) = mounted(&[root]);
    let container = Container {
        volume_mounts: Some(mounts),
        ..container(config)
    };
    let pod = PodSpec {
        service_account_name: Some(config.agent.service_account.clone()),
        automount_service_account_token: Some(true),
        affinity: Some(affinity::any_of(inputs.clusters, inputs.kept)),
        host_network: Some(true),
        host_pid: Some(true),
        dns_policy: Some("ClusterFirstWithHostNet".to_owned()),
        priority_class_name: Some(config.priority_class_name.clone()),
        image_pull_secrets: pull_secrets(&config.image_pull_secrets),
        tolerations: Some(tolerate_everything()),
        containers: vec![container],
        volumes: Some(volumes),
        ..PodSpec::default()
    };
    Component {
        name: AGENT.to_owned(),
        role: "agent",
        labels: Vec::new(),
        strategy: rolling(),
        pod,
    }
}

fn container(config: &Config) -> Container {
    let mut env = vec![
        node_name(),
        node_ips(),
        variable("RUST_LOG", &config.agent.log_level),
        // One arena of the C library's allocator (mallopt(3)) for threads that take turns: half a megabyte less on each node.
        variable("MALLOC_ARENA_MAX", "1"),
    ];
    env.extend(
        config
            .proxy
            .variables()
            .into_iter()
            .map(|(name, value)| variable(name, value)),
    );
    Container {
        name: "agent".to_owned(),
        image: Some(config.agent.image.clone()),
        image_pull_policy: Some(config.agent.image_pull_policy.clone()),
        args: Some(args(config)),
        env: Some(env),
        resources: config.agent.resources.requirements(),
        security_context: Some(SecurityContext {
            privileged: Some(true),
            run_as_user: Some(0),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

fn args(config: &Config) -> Vec<String> {
    let fixed = ["run", "--root", "/host", "--node-name", "$(NODE_NAME)"];
    let mut args: Vec<String> = fixed.map(ToOwned::to_owned).to_vec();
    args.extend(["--kubelet-root".to_owned(), config.kubelet_root.clone()]);
    args.extend(["--cdi-dir".to_owned(), config.cdi_dir.clone()]);
    for vendor in &config.gpu_vendors {
        args.extend(["--gpu-vendor".to_owned(), vendor.clone()]);
    }
    args.extend(config.agent.extra_args.iter().cloned());
    args
}
