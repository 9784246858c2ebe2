use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::fabric::LinkLayer;
use crate::node::{
    MachineSummary, MaintenanceStatus, NicStatus, OtherAdvertiser, PairStatus, Phase, PlanStatus,
};
use crate::reasons::{NodeCondition, NodeReason};

const MESSAGE: &str = "mlx5_7 port 1 runs at 100 Gb/s over 2 lanes, its product does 400 Gb/s over 4: reseat the cable or \
                       replace it, then check `ethtool eth7`; jobs on GPU7 get a quarter of the bandwidth until then";

fn finding(index: usize) -> Finding {
    let severity = [Severity::Error, Severity::Warning, Severity::Info][index / 14];
    Finding {
        id: format!("PORT_RATE_BELOW_PRODUCT_{index}"),
        severity,
        component: format!("nic/0000:{index:02x}:00.0/mlx5_{index}"),
        message: MESSAGE.to_owned(),
    }
}

fn action(index: usize) -> ActionStatus {
    ActionStatus {
        kind: "SetOpenibConf".to_owned(),
        target: format!("/etc/infiniband/openib.conf:KEY_NUMBER_{index}"),
        desired: "yes".to_owned(),
        cost: [Cost::None, Cost::Traffic, Cost::Reboot][index % 3],
        attempts: 3,
        exhausted: false,
        message: "waits for training/llm-worker-17 of namespace training, which holds 8 queue pairs on mlx5_3".to_owned(),
    }
}

/// 36 NICs over 16 GPUs: four pairs of three, twelve of two.
fn pair(index: usize) -> PairStatus {
    let nics = (0..if index < 4 { 3 } else { 2 })
        .map(|nic| format!("rocep{index}s0f{nic}v17"))
        .collect();
    PairStatus {
        gpu: format!("GPU{index}"),
        nics,
        distance: "UNKNOWN".to_owned(),
        shared: true,
        admitted: false,
        reason: "mlx5_7 is NODE away and maxDistance is PXB: raise maxDistance or check the PCIe topology".to_owned(),
    }
}

fn nic(index: usize) -> NicStatus {
    NicStatus {
        pci: format!("0000:{index:02x}:00.0"),
        rdma: Some(format!("mlx5_{index}")),
        product: Some("15b3:101e".to_owned()),
        netdevs: vec![format!("ens{index}np0")],
        link_layers: vec![LinkLayer::Ethernet],
        rate: Some(400),
        ..NicStatus::default()
    }
}

fn condition(kind: NodeCondition) -> Condition {
    Condition {
        type_: kind.to_string(),
        status: "False".to_owned(),
        reason: NodeReason::ForeignGpuAdvertiser.to_string(),
        message: MESSAGE.to_owned(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        observed_generation: Some(1_000_000),
    }
}

fn other(n: u32) -> OtherAdvertiser {
    OtherAdvertiser {
        resource: format!("nvidia.com/mig-{n}g.10gb.shared"),
        gpus: 16,
        partitioned: true,
    }
}

fn largest(findings: usize, actions: usize) -> GpuRdmaNodeStatus {
    let hash = "a".repeat(64);
    let text = || Some("x".repeat(48));
    GpuRdmaNodeStatus {
        observed_generation: Some(1_000_000),
        boot_id: text(),
        install_hash: Some(hash.clone()),
        agent_version: text(),
        phase: Phase::NotApplicable,
        summary: MachineSummary {
            gpus: 16,
            nics: 36,
            admitted_pairs: 16,
            gpu_product: text(),
            gpu_driver: text(),
            os: text(),
            kernel: text(),
            link_layer: Some("InfiniBand".to_owned()),
        },
        pairs: (0..16).map(pair).collect(),
        nics: (0..16).map(nic).collect(),
        other_advertisers: (0..8).map(other).collect(),
        addresses_in_use: (0..4).map(|n| format!("10.10.0.{n}")).collect(),
        findings: (0..findings).map(finding).collect(),
        plan: Some(PlanStatus {
            hash: hash.clone(),
            install_hash: hash.clone(),
            cost: Cost::Reboot,
            actions: (0..actions).map(action).collect(),
        }),
        maintenance: Some(MaintenanceStatus {
            granted_plan: hash,
            message: MESSAGE.to_owned(),
            ..Default::default()
        }),
        conditions: NodeCondition::ALL
            .iter()
            .map(|kind| condition(*kind))
            .collect(),
    }
}

fn errors(status: &GpuRdmaNodeStatus) -> usize {
    status
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count()
}

#[test]
fn the_largest_machine_fits_with_every_pair_action_and_error() {
    let status = largest(40, 20);
    assert!(
        size(&status) > MAX_STATUS_BYTES,
        "the case must exceed the limit to prove something"
    );
    let bounded = status.clone().bounded();
    assert!(
        size(&bounded) <= MAX_STATUS_BYTES,
        "{} bytes",
        size(&bounded)
    );
    assert_eq!(
        (errors(&bounded), errors(&status), bounded.pairs.len()),
        (14, 14, 16)
    );
    assert_eq!(bounded.plan.unwrap().actions.len(), 20);
}

#[test]
fn a_status_that_fits_is_not_changed() {
    let status = largest(4, 3);
    assert_eq!(status.clone().bounded(), status);
}

#[test]
fn what_is_left_out_is_the_least_bad_and_counted() {
    let mut status = largest(40, 30);
    status.findings.extend((0..30).map(|_| finding(41)));
    let bounded = status.bounded();
    assert!(size(&bounded) <= MAX_STATUS_BYTES);
    let (last, kept) = bounded.findings.split_last().unwrap();
    assert_eq!(last.id, OMITTED);
    assert!(
        last.message
            .starts_with(&format!("{} further findings", 70 - kept.len())),
        "{}",
        last.message
    );
    let first: Vec<_> = (0..kept.len()).map(|index| finding(index).id).collect();
    assert_eq!(
        kept.iter()
            .map(|finding| finding.id.clone())
            .collect::<Vec<_>>(),
        first
    );
}

#[test]
fn costly_actions_are_never_left_out_or_changed() {
    let status = largest(40, 120);
    let costly = |status: &GpuRdmaNodeStatus| -> Vec<_> {
        let actions = status
            .plan
            .iter()
            .flat_map(|plan| &plan.actions)
            .filter(|action| action.cost != Cost::None);
        actions
            .map(|action| {
                (
                    action.kind.clone(),
                    action.target.clone(),
                    action.desired.clone(),
                )
            })
            .collect()
    };
    let bounded = status.clone().bounded();
    assert_eq!(costly(&bounded), costly(&status));
    assert_eq!(bounded.plan.unwrap().actions.len(), 80 + MAX_FREE_ACTIONS);
}

#[test]
fn text_is_cut_between_characters() {
    let mut text = "×".repeat(10);
    cut(&mut text, 10);
    assert_eq!(text, "×××…");
    let mut short = "ib0".to_owned();
    cut(&mut short, 10);
    assert_eq!(short, "ib0");
}
