use super::*;

const MINIMAL: &str = "agent: {image: 'r/agent:1'}\nplugin: {image: 'r/plugin:1'}\n";

fn parse(text: &str) -> Result<Config, serde_yaml::Error> {
    serde_yaml::from_str(text)
}

#[test]
fn images_alone_are_enough() {
    let config = parse(MINIMAL).unwrap();
    config.check().unwrap();
    assert_eq!(config.agent.service_account, "gpu-rdma-agent");
    assert_eq!(config.plugin.service_account, "gpu-rdma-plugin");
    assert_eq!((config.metrics_port, config.health_port), (8080, 8081));
    assert_eq!(config.cdi_dir, "/var/run/cdi");
    assert_eq!(config.gpu_vendors, ["10de"]);
}

#[test]
fn an_unknown_field_is_refused_by_name() {
    let error = parse(&format!("{MINIMAL}kubletRoot: /x\n")).unwrap_err();
    assert!(error.to_string().contains("kubletRoot"), "{error}");
}

#[test]
fn a_missing_image_is_refused() {
    assert!(
        parse("agent: {}\nplugin: {image: x}")
            .unwrap_err()
            .to_string()
            .contains("image")
    );
}

#[test]
fn bad_values_name_the_field_the_value_and_the_remedy() {
    for (line, field) in [
        ("kubeletRoot: var/lib/kubelet", "kubeletRoot"),
        ("cdiDir: /var/../etc", "cdiDir"),
        ("gpuVendors: [NVIDIA]", "gpuVendors"),
        ("metricsPort: 8081", "metricsPort"),
    ] {
        let error = parse(&format!("{MINIMAL}{line}\n"))
            .unwrap()
            .check()
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(field), "{line}: {error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::load(Path::new("/nonexistent/operator.yaml")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read /nonexistent/operator.yaml");
}

#[test]
fn empty_resources_are_absent() {
    assert_eq!(Resources::default().requirements(), None);
    let resources: Resources = serde_yaml::from_str("limits: {memory: 1Gi}").unwrap();
    assert!(resources.requirements().unwrap().requests.is_none());
}

#[test]
fn proxy_variables_leave_out_what_is_empty() {
    let proxy = Proxy {
        no_proxy: "a".into(),
        https_proxy: "b".into(),
        http_proxy: String::new(),
    };
    assert_eq!(proxy.variables(), [("HTTPS_PROXY", "b"), ("NO_PROXY", "a")]);
}
