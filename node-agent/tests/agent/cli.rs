//! The command line over a simulated node, as a person uses it.

use std::process::{Command, Output};

use crate::common::{Answers, Node};

fn agent(node: &Node, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_node-agent"))
        .arg("--root")
        .arg(node.settings.root.path())
        .args(arguments)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8(all).unwrap()
}

/// A node that may be called from a process while its kubelet answers here.
fn config(node: &Node, content: &str) -> String {
    node.put("/tmp/config.yaml", content);
    node.settings
        .root
        .join("/tmp/config.yaml")
        .display()
        .to_string()
}

#[test]
fn help_names_every_command() {
    let output = Command::new(env!("CARGO_BIN_EXE_node-agent"))
        .arg("--help")
        .output()
        .unwrap();
    let help = text(&output);
    for command in [
        "facts", "plan", "apply", "verify", "capture", "explain", "run", "--root",
    ] {
        assert!(help.contains(command), "{command} is missing in\n{help}");
    }
}

#[test]
fn a_finding_is_explained_and_a_wrong_name_gets_near_ones() {
    let node = Node::new("nvidia-dgx-h100");
    let page = text(&agent(&node, &["explain", "pkey_not_granted"]));
    assert!(page.starts_with("# PKEY_NOT_GRANTED\n"), "{page}");
    assert!(page.contains("partitions.conf"), "{page}");
    let all = text(&agent(&node, &["explain"]));
    assert!(all.contains("| [ROCE_ACTIVE_MTU_1024]"), "{all}");
    let wrong = agent(&node, &["explain", "PKEY_GRANTED"]);
    assert!(!wrong.status.success());
    assert!(
        text(&wrong).contains("PKEY_NOT_GRANTED"),
        "{}",
        text(&wrong)
    );
}

#[test]
fn facts_are_yaml_or_json() {
    let node = Node::new("nvidia-dgx-h100");
    let before = node.tree();
    let json: serde_json::Value =
        serde_json::from_slice(&agent(&node, &["facts", "-o", "json"]).stdout).unwrap();
    assert_eq!(json["machine"]["gpus"].as_array().unwrap().len(), 8);
    let yaml: serde_yaml::Value = serde_yaml::from_slice(&agent(&node, &["facts"]).stdout).unwrap();
    assert!(yaml.get("kernelRelease").is_some());
    assert_eq!(node.tree(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_then_apply_then_verify() {
    let mut node = Node::new("nvidia-dgx-h100");
    node.start_kubelet(Answers::default());
    node.put("/etc/init.d/openibd", "");
    node.put("/etc/infiniband/openib.conf", "UMAD_LOAD=no\n");
    let file = config(&node, "driver: {openibConf: {UMAD_LOAD: 'yes'}}\n");
    let before = node.tree();
    let plan = text(&agent(&node, &["plan", "--config", &file]));
    assert!(plan.contains("SetOpenibConf UMAD_LOAD -> yes"), "{plan}");
    assert!(plan.contains("GPU0"), "{plan}");
    assert_eq!(node.tree(), before);
    let verify = agent(&node, &["verify", "--config", &file]);
    assert_eq!(verify.status.code(), Some(1));
    let differs = "differs    SetOpenibConf UMAD_LOAD = yes: UMAD_LOAD is no";
    assert!(text(&verify).contains(differs), "{}", text(&verify));
    let applied = agent(&node, &["apply", "--config", &file]);
    assert_eq!(applied.status.code(), Some(0), "{}", text(&applied));
    assert!(
        text(&applied).contains("done: SetOpenibConf UMAD_LOAD"),
        "{}",
        text(&applied)
    );
    let verify = agent(&node, &["verify", "--config", &file]);
    assert_eq!(verify.status.code(), Some(0), "{}", text(&verify));
    let written = "written    SetOpenibConf UMAD_LOAD = yes";
    assert!(text(&verify).contains(written), "{}", text(&verify));
    let back = agent(&node, &["apply", "--restore", "--config", &file]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back));
    assert_eq!(node.read("/etc/infiniband/openib.conf"), "UMAD_LOAD=no\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_refuses_a_node_in_mode_observe() {
    let node = Node::new("nvidia-dgx-h100");
    let object = "apiVersion: gpurdma.dev/v1alpha1\nkind: GpuRdmaNode\nmetadata: {name: n}\nspec: {mode: Observe}\n";
    let file = config(&node, object);
    let before = node.tree();
    let refused = agent(&node, &["apply", "--config", &file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused).contains("spec.mode is Observe"),
        "{}",
        text(&refused)
    );
    assert_eq!(node.tree(), before);
}

#[test]
fn a_file_that_is_neither_is_named() {
    let node = Node::new("nvidia-dgx-h100");
    let file = config(&node, "driver: {modules: 7}\n");
    let refused = text(&agent(&node, &["plan", "--config", &file]));
    assert!(
        refused.contains("config.yaml") && refused.contains("modules"),
        "{refused}"
    );
}

#[test]
fn a_captured_machine_is_read_like_the_machine() {
    let node = Node::new("nvidia-dgx-h100");
    let address = r#"[{"ifindex":2,"ifname":"eth0","flags":["UP"],"mtu":1500,"link_type":"ether","address":"b8:59:9f:c0:ff:ee","addr_info":[{"local":"10.17.3.5","prefixlen":24,"scope":"global"}]}]"#;
    node.put("/run/gpurdma-recorded/ip-address.json", address);
    let before = node.tree();
    let out = tempfile::tempdir().unwrap();
    let captured = agent(&node, &["capture", "--out", out.path().to_str().unwrap()]);
    assert_eq!(captured.status.code(), Some(0), "{}", text(&captured));
    assert_eq!(node.tree(), before);
    let again = agent(&node, &["capture", "--out", out.path().to_str().unwrap()]);
    assert!(text(&again).contains("not empty"), "{}", text(&again));
    let recorded = std::fs::read_to_string(out.path().join("run/gpurdma-recorded/ip-address.json"));
    let recorded = recorded.unwrap();
    assert!(recorded.contains(r#""mtu":1500"#) && !recorded.contains("10.17.3.5"));
    assert!(!recorded.contains("c0:ff:ee"), "{recorded}");
}
