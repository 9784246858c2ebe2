//! What is said of very different machines: distances, pairs, reasons. Review a change with `cargo insta review`.

use topology::distance::Distance;
use topology::policy::ResourcePolicy;
use topology::report::discovery;
use topology::{nccl_xml, render};

use support::file;

mod support;

fn text(name: &str, max_distance: Distance) -> String {
    let file = file(name);
    let policy = ResourcePolicy {
        max_distance,
        ..ResourcePolicy::default()
    };
    render::table(&discovery(&file.machine, &file.machine.paths(), &policy))
}

#[test]
fn discovery_with_the_default_policy() {
    for name in [
        "nvidia-dgx-a100",
        "nvidia-dgx-h100",
        "nvidia-dgx2-v100",
        "oci-bm-gpu-h100-8",
        "azure-ndv5-h100",
        "azure-ndv5-h100-in-guest",
        "kvm-h200-flat",
        "h200-8gpu-4nic-host-pix-pxb",
        "h100-8gpu-9nic-reversed-order",
        "converged-a100x-2x",
        "gb200-4gpu-8nic-all-sys",
        "hgx-b200-8-no-rdma",
        "vm-h20-8gpu-8nic-reversed",
        "a800-8gpu-4nic-uneven",
        "rccl-8x-mi300x-8nic",
        "8gpu-6nic-ib4-eth2-pxb-pairs",
        "hgx-a100-8-epyc-one-ib",
    ] {
        insta::assert_snapshot!(format!("{name}"), text(name, Distance::Pxb));
    }
}

#[test]
fn discovery_with_any_distance() {
    for name in [
        "a800-8gpu-4nic-uneven",
        "kvm-h200-flat",
        "gb200-4gpu-8nic-all-sys",
        "azure-ndv5-h100-in-guest",
    ] {
        insta::assert_snapshot!(format!("any-distance-{name}"), text(name, Distance::Sys));
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
