use clap::CommandFactory;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

fn output(line: &str) -> anyhow::Result<String> {
    match parse(line)?.command {
        Command::Discover(args) => args.run(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn serve_has_the_defaults_of_a_node() {
    let Command::Serve(args) = parse("device-plugin serve").unwrap().command else {
        panic!("no serve")
    };
    let options = args.options();
    assert_eq!(
        options.source.node_file,
        PathBuf::from("/run/gpurdma/node.json")
    );
    assert_eq!(
        options.kubelet_dir,
        PathBuf::from("/var/lib/kubelet/device-plugins")
    );
    assert_eq!(options.timing, Timing::default());
}

#[test]
fn a_kubelet_with_another_root_directory_is_served_there() {
    let line = "device-plugin serve --kubelet-dir /data/kubelet/device-plugins";
    let Command::Serve(args) = parse(line).unwrap().command else {
        panic!("no serve")
    };
    let dir = args.options().kubelet_dir;
    assert_eq!(dir, PathBuf::from("/data/kubelet/device-plugins"));
}

#[test]
fn a_root_and_a_machine_file_exclude_each_other() {
    assert!(parse("device-plugin discover --root / --machine x.yaml").is_err());
}

#[test]
fn the_help_of_discover_names_the_schema_that_it_prints() {
    let version = format!("now {})", topology::report::SCHEMA);
    assert!(DISCOVER_EXAMPLES.contains(&version));
}

#[test]
fn wrong_values_are_refused_by_name() {
    for line in [
        "--max-distance near",
        "--nics-per-gpu 0",
        "-o xml",
        "--unknown-distance guess",
    ] {
        let error = parse(&format!("device-plugin discover {line}"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(line.split(' ').next_back().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn policy_options_reach_the_pairing() {
    let machine = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../topology/tests/machines/2gpu-nv1-1nic-phb.yaml"
    );
    let pairs = |options: &str| {
        let text = output(&format!(
            "device-plugin discover --machine {machine} -o json {options}"
        ))
        .unwrap();
        serde_json::from_str::<topology::report::Discovery>(&text)
            .unwrap()
            .pairs
            .len()
    };
    assert_eq!(pairs("--max-distance pix"), 0);
    assert_eq!(pairs("--max-distance sys --no-sharing"), 1);
    assert_eq!(pairs("--max-distance sys"), 2);
}

#[tokio::test]
async fn doctor_of_an_empty_node_fails_and_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().display();
    let line = format!(
        "device-plugin doctor -o json --node-file {base}/node.json --kubelet-dir {base}/plugins --root {base}"
    );
    let Command::Doctor(args) = parse(&line).unwrap().command else {
        panic!("no doctor")
    };
    let (text, code) = args.run().await.unwrap();
    assert_eq!(code, 1);
    let checks: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(
        checks
            .iter()
            .filter(|check| check["verdict"] == "fail")
            .all(|check| check["remedy"].is_string())
    );
}
