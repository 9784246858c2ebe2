use serde_json::json;

use super::*;
use crate::validate::tests::cluster;

fn config(extra: &str) -> Config {
    let text = format!(
        "agent: {{image: 'example.org/agent:1'}}\nplugin: {{image: 'example.org/plugin:1'}}\n{extra}"
    );
    serde_yaml::from_str(&text).unwrap()
}

fn rendered(config: &Config, clusters: &[Cluster], plugin_wanted: bool) -> String {
    let clusters: Vec<_> = clusters.iter().collect();
    let inputs = Inputs {
        namespace: "gpu-rdma",
        config,
        clusters: &clusters,
        kept: &[],
        plugin_wanted,
    };
    let sets = daemon_sets(&inputs);
    let documents = sets.iter().map(|set| serde_yaml::to_string(set).unwrap());
    documents
        .flat_map(|text| ["---\n".to_owned(), text])
        .collect()
}

#[test]
fn without_a_cluster_there_is_nothing() {
    assert_eq!(rendered(&config(""), &[], false), "");
}

#[test]
fn observe_runs_the_agent_on_all_linux_nodes() {
    insta::assert_snapshot!(rendered(&config(""), &[cluster("all", &json!({}))], false));
}

#[test]
fn selectors_of_two_clusters_are_alternatives() {
    let clusters = [
        cluster(
            "a",
            &json!({"nodeSelector": {"matchLabels": {"pool": "a", "zone": "1"}}}),
        ),
        cluster(
            "b",
            &json!({"nodeSelector": {"matchExpressions": [
                {"key": "gpu", "operator": "Exists"}, {"key": "pool", "operator": "NotIn", "values": ["a", "c"]},
            ]}}),
        ),
        cluster(
            "c",
            &json!({"nodeSelector": {"matchLabels": {"pool": "a", "zone": "1"}}}),
        ),
    ];
    let clusters: Vec<_> = clusters.iter().collect();
    insta::assert_snapshot!(serde_yaml::to_string(&affinity::any_of(&clusters, &[])).unwrap());
}

#[test]
fn enforce_with_every_setting() {
    let config = config(
        "imagePullSecrets: [b, a]\nkubeletRoot: /data/kubelet\ngpuVendors: ['10de', '1002']\n\
         proxy: {httpsProxy: 'http://proxy:3128'}\n",
    );
    insta::assert_snapshot!(rendered(
        &config,
        &[cluster("all", &json!({"mode": "Enforce"}))],
        true
    ));
}

#[test]
fn a_driver_container_has_its_own_daemon_set() {
    let spec = json!({"mode": "Enforce", "driver": {"source": "Container", "container": {
        "repository": "nvcr.io/nvidia/mellanox", "image": "doca-driver", "version": "25.04-0.6.1.0-2",
        "env": {"UNLOAD_STORAGE_MODULES": "true"}, "imagePullSecrets": ["ngc"],
    }}});
    let text = rendered(&config(""), &[cluster("pool-a", &spec)], false);
    let driver = text.split("---\n").last().unwrap();
    insta::assert_snapshot!(driver);
}

#[test]
fn a_digest_follows_an_at_sign() {
    let spec = json!({"driver": {"source": "Container", "container": {
        "repository": "r", "image": "i", "version": "sha256:00",
    }}});
    assert!(rendered(&config(""), &[cluster("c", &spec)], false).contains("image: r/i@sha256:00"));
}

#[test]
fn hashes_follow_content_only() {
    let sets = |extra: &str| {
        let config = config(extra);
        let cluster = cluster("c", &json!({}));
        let clusters = [&cluster];
        daemon_sets(&Inputs {
            namespace: "n",
            config: &config,
            clusters: &clusters,
            kept: &[],
            plugin_wanted: false,
        })
    };
    assert_eq!(sets(""), sets("metricsPort: 9000\n"));
    assert_ne!(
        template_hash(&sets("")[0]),
        template_hash(&sets("cdiDir: /etc/cdi\n")[0])
    );
}
