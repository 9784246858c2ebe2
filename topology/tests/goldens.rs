//! How a discovery looks as a table, as JSON, as a picture and as a topology file; what is said of each machine is in
//! `every_machine.rs`. Review a change with `cargo insta review`.

use topology::policy::ResourcePolicy;
use topology::report::discovery;
use topology::{nccl_xml, render};

use support::file;

mod support;

fn table(name: &str) -> String {
    let machine = file(name).machine;
    render::table(&discovery(
        &machine,
        &machine.paths(),
        &ResourcePolicy::default(),
    ))
}

#[test]
fn tables() {
    for name in [
        "nvidia-dgx-a100",
        "h200-8gpu-4nic-host-pix-pxb",
        "hgx-a100-8-epyc-one-ib",
        "hgx-b200-8-no-rdma",
        "oci-bm-gpu-h100-8",
    ] {
        insta::assert_snapshot!(format!("{name}"), table(name));
    }
}

#[test]
fn two_nics_per_gpu() {
    let file = file("oci-bm-gpu-h100-8");
    let policy = ResourcePolicy {
        nics_per_gpu: 2,
        ..ResourcePolicy::default()
    };
    let discovery = discovery(&file.machine, &file.machine.paths(), &policy);
    insta::assert_snapshot!("two-nics-oci-bm-gpu-h100-8", render::table(&discovery));
}

#[test]
fn the_json_of_a_discovery() {
    let file = file("converged-a100x-2x");
    let discovery = discovery(
        &file.machine,
        &file.machine.paths(),
        &ResourcePolicy::default(),
    );
    insta::assert_snapshot!(
        "json-converged-a100x-2x",
        serde_json::to_string_pretty(&discovery).unwrap()
    );
}

#[test]
fn pictures() {
    for name in [
        "nvidia-dgx-h100",
        "gb200-4gpu-8nic-all-sys",
        "h200-8gpu-4nic-host-pix-pxb",
    ] {
        let machine = file(name).machine;
        let paths = machine.paths();
        let discovery = discovery(&machine, &paths, &ResourcePolicy::default());
        insta::assert_snapshot!(
            format!("picture-{name}"),
            render::svg(&machine, &paths, &discovery)
        );
    }
}

#[test]
fn topology_files() {
    for name in ["nvidia-dgx-a100", "converged-a100x-2x"] {
        insta::assert_snapshot!(format!("xml-{name}"), nccl_xml::write(&file(name).machine));
    }
}
