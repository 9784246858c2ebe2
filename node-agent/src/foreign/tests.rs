use super::*;

const A: &str = "GPU-aaaaaaaa-0000-0000-0000-000000000000";
const B: &str = "GPU-bbbbbbbb-0000-0000-0000-000000000000";

/// Two GPUs whose minors are not in the order of their addresses.
fn gpus() -> Vec<DriverGpu> {
    let gpu = |(uuid, minor): (&str, u32)| DriverGpu {
        uuid: uuid.to_owned(),
        minor: Some(minor),
    };
    [(A, 5), (B, 4)].map(gpu).to_vec()
}

fn allocatable(name: &str, ids: &[&str]) -> KubeletDevices {
    let ids = ids.iter().map(|&id| id.to_owned()).collect();
    KubeletDevices {
        allocatable: [(name.to_owned(), ids)].into(),
        ..KubeletDevices::default()
    }
}

fn found(kubelet: &KubeletDevices) -> Vec<String> {
    let own = ["rdma/gpudirect".to_owned()].into();
    seen(kubelet, &own, &gpus()).into_keys().collect()
}

#[test]
fn recognises_every_form_of_id() {
    for (name, id, who) in [
        ("nvidia.com/gpu", A, vec![A]),
        (
            "nvidia.com/gpu.shared",
            "GPU-aaaaaaaa-0000-0000-0000-000000000000::3",
            vec![A],
        ),
        (
            "example.com/vgpu",
            "GPU-bbbbbbbb-0000-0000-0000-000000000000-7",
            vec![B],
        ),
        ("nvidia.com/gpu", "1", vec![B]),
        ("nvidia.com/gpu", "0::3", vec![A]),
        ("nvidia.com/gpu", "7", vec![A, B]),
        ("nvidia.com/gpu", "nvidia4", vec![B]),
        ("nvidia.com/gpu", "nvidia5::1", vec![A]),
        ("nvidia.com/gpu", "nvidia9", vec![A, B]),
        ("nvidia.com/gpu.shared", "slice-a", vec![A, B]),
        (
            "nvidia.com/gpu",
            "MIG-GPU-bbbbbbbb-0000-0000-0000-000000000000/1/0",
            vec![B],
        ),
        (
            "nvidia.com/gpu",
            "GPU-cccccccc-0000-0000-0000-000000000000::2",
            vec![],
        ),
        ("nvidia.com/mlnxnics", "mlx5_core.sf.4", vec![]),
        (
            "nvidia.com/mig-1g.10gb",
            "MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
            vec![A, B],
        ),
        (
            "nvidia.com/gpu",
            "MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
            vec![A, B],
        ),
        (
            "nvidia.com/gpu",
            "GPU-cccccccc-0000-0000-0000-000000000000",
            vec![],
        ),
        ("example.com/nic", "1", vec![]),
        ("nvidia.com/hostdev", "0000:0c:00.0", vec![]),
        ("rdma/gpudirect", A, vec![]),
    ] {
        assert_eq!(found(&allocatable(name, &[id])), who, "{name} {id}");
    }
}

/// A GPU without a driver has no number in NVIDIA's libraries.
#[test]
fn numbers_count_the_gpus_that_the_driver_has() {
    let file = "../topology/tests/machines/nvidia-dgx-h100.yaml";
    let text = std::fs::read_to_string(file).unwrap();
    let mut machine = topology::file::parse(&text).unwrap().machine;
    for (at, gpu) in machine.gpus.iter_mut().enumerate() {
        gpu.uuid = topology::fact::Fact::Known(format!("GPU-{at}"));
    }
    machine.gpus[0].uuid = topology::fact::Fact::Absent;
    let gpus = driver_gpus(&machine);
    assert_eq!(meant("nvidia.com/gpu", "0", &gpus), ["GPU-1"]);
}

#[test]
fn no_capacity_but_held_counts() {
    let holder = Holder {
        namespace: "team".to_owned(),
        pod: "old-job".to_owned(),
        container: "main".to_owned(),
    };
    let held = [(A.to_owned(), holder)].into();
    let kubelet = KubeletDevices {
        held: [("nvidia.com/gpu".to_owned(), held)].into(),
        ..KubeletDevices::default()
    };
    let seen = seen(&kubelet, &BTreeSet::new(), &gpus());
    let found = foreign(seen, &ForeignMemory::default());
    assert!(
        found[A]
            .reason()
            .contains("nvidia.com/gpu and held by team/old-job")
    );
    let findings = findings(&found);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].message.contains("1 of this node's GPUs"),
        "{}",
        findings[0].message
    );
}
