use super::*;

#[test]
fn worst_first_and_like_ones_joined() {
    let mut findings = vec![
        FindingId::MachineNote.about("topology", "odd"),
        FindingId::NoGpuDriver.about("GPU1", "no driver"),
        FindingId::KubeletUnreachable.about("kubelet", "silent"),
        FindingId::NoGpuDriver.about("GPU0", "no driver"),
        FindingId::NoGpuDriver.about("GPU0", "no driver"),
    ];
    sort(&mut findings);
    let shown: Vec<_> = findings
        .iter()
        .map(|f| format!("{} {}", f.id, f.component))
        .collect();
    assert_eq!(
        shown,
        [
            "NO_GPU_DRIVER GPU0, GPU1",
            "KUBELET_UNREACHABLE kubelet",
            "MACHINE_NOTE topology"
        ]
    );
}

#[test]
fn a_long_message_is_cut() {
    let finding = FindingId::MachineNote.about("x", "ü".repeat(1000));
    assert_eq!(finding.message.chars().count(), MESSAGE_LIMIT);
}
