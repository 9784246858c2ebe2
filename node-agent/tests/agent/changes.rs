//! Changes to the host, and how they are reported.

use crds::cluster::Driver;
use crds::node::{NodeConfig, Phase};
use host::fixture::{FixtureModule, FixtureOptions};
use k8s_openapi::jiff::Timestamp;
use node_agent::cycle::cycle;
use node_agent::desired::Desired;
use node_agent::session::Session;
use node_agent::settings::PARTITION_FILE;

use crate::ask::{MACHINE, admitted, enforce, finding_ids, nothing_asked, offers, reason, turn};
use crate::common::{Answers, Node};

#[tokio::test]
async fn a_module_that_is_asked_for_is_loaded_and_proved() {
    let mut node = Node::new(MACHINE);
    offers(&mut node).await;
    // A stand-in for chroot whose modprobe makes the module appear where the kernel would.
    let script = "#!/bin/sh\necho \"$4 4096 0 - Live 0x0\" >> \"$1/proc/modules\"\n";
    let chroot = stand_in(&node, script);
    node.settings.chroot = chroot;
    let driver = Driver {
        modules: vec!["ib-umad".to_owned()],
        ..Driver::default()
    };
    let asks = enforce(NodeConfig {
        driver,
        ..NodeConfig::default()
    });
    let loaded = turn(&node, &asks).await;
    assert_eq!(
        loaded.applied.actions,
        [("LoadModule ib_umad".to_owned(), None)]
    );
    assert_eq!(loaded.status.plan, None);
    assert!(
        node.read("/var/lib/gpurdma/journal.json")
            .contains("ib_umad")
    );
    assert_eq!(loaded.status.phase, Phase::Ready);
}

#[tokio::test]
async fn success_without_effect_is_a_failure() {
    let mut node = Node::new(MACHINE);
    offers(&mut node).await;
    node.settings.chroot = stand_in(&node, "#!/bin/sh\nexit 0\n");
    let driver = Driver {
        modules: vec!["ib_umad".to_owned()],
        ..Driver::default()
    };
    let asks = enforce(NodeConfig {
        driver,
        ..NodeConfig::default()
    });
    let turn = turn(&node, &asks).await;
    let plan = turn.status.plan.as_ref().unwrap();
    assert_eq!(plan.actions[0].attempts, 1);
    assert!(
        plan.actions[0].message.contains("does not show ib_umad"),
        "{}",
        plan.actions[0].message
    );
    assert_eq!(
        reason(&turn.status, "DriverReady"),
        ("False", "ActionFailed")
    );
    assert!(
        !node
            .read("/var/lib/gpurdma/journal.json")
            .contains("ib_umad")
    );
}

fn stand_in(node: &Node, script: &str) -> std::path::PathBuf {
    node.put("/usr/lib/gpurdma-test/chroot", script);
    let path = node.settings.root.join("/usr/lib/gpurdma-test/chroot");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    path
}

#[tokio::test]
async fn openib_conf_is_written_and_not_yet_in_effect() {
    let mut node = Node::new(MACHINE);
    offers(&mut node).await;
    node.put("/etc/init.d/openibd", "");
    node.put(
        "/etc/infiniband/openib.conf",
        "# site\nUMAD_LOAD=no # off\nFOO=1\n",
    );
    let openib_conf = [("UMAD_LOAD".to_owned(), "yes".to_owned())].into();
    let asks = enforce(NodeConfig {
        driver: Driver {
            openib_conf,
            ..Driver::default()
        },
        ..NodeConfig::default()
    });
    let written = turn(&node, &asks).await;
    assert_eq!(
        node.read("/etc/infiniband/openib.conf"),
        "# site\nUMAD_LOAD=yes # off\nFOO=1\n"
    );
    assert!(finding_ids(&written.status).contains("OPENIB_CONF_NOT_IN_EFFECT"));
    assert_eq!(
        reason(&written.status, "DriverReady"),
        ("False", "DriverMismatch")
    );
    // Someone writes it back: no tug of war.
    node.put("/etc/infiniband/openib.conf", "UMAD_LOAD=no\n");
    let contested = turn(&node, &asks).await;
    assert_eq!(node.read("/etc/infiniband/openib.conf"), "UMAD_LOAD=no\n");
    assert!(finding_ids(&contested.status).contains("FOREIGN_OWNER"));
    assert_eq!(
        reason(&contested.status, "Ready"),
        ("False", "ForeignOwner")
    );
}

#[tokio::test]
async fn paused_runs_no_action() {
    let mut node = Node::new(MACHINE);
    offers(&mut node).await;
    let driver = Driver {
        modules: vec!["ib_umad".to_owned()],
        ..Driver::default()
    };
    let asks = Desired {
        paused: true,
        ..enforce(NodeConfig {
            driver,
            ..NodeConfig::default()
        })
    };
    let turn = turn(&node, &asks).await;
    assert_eq!(turn.applied.actions, []);
    assert_eq!(reason(&turn.status, "Ready"), ("False", "Paused"));
}

#[tokio::test]
async fn a_broken_partition_file_is_a_finding_and_made_anew() {
    let mut node = Node::new(MACHINE);
    node.start_kubelet(Answers::default());
    turn(&node, &nothing_asked()).await;
    let good = node.read(PARTITION_FILE);
    node.put(PARTITION_FILE, "{");
    let turn = turn(&node, &nothing_asked()).await;
    assert!(finding_ids(&turn.status).contains("STATE_UNREADABLE"));
    assert_eq!(node.read(PARTITION_FILE), good);
    assert_eq!(admitted(&node), 8);
}

#[tokio::test]
async fn a_node_without_nics_is_not_this_operators() {
    let mut node = Node::new("hgx-b200-8-no-rdma");
    node.start_kubelet(Answers::default());
    let turn = turn(&node, &nothing_asked()).await;
    assert_eq!(turn.status.phase, Phase::NotApplicable);
    assert_eq!(turn.status.findings, []);
}

#[tokio::test]
async fn the_status_of_the_largest_machines_is_small_and_steady() {
    for name in [
        "h100-class-8gpu-36nic-vf32-bond4",
        "b200-8gpu-16nic",
        "nvidia-dgx2-v100",
        MACHINE,
    ] {
        let modules = (0..20).map(|n| FixtureModule {
            name: format!("module_{n}"),
            holders: vec![],
            version: None,
            source_version: None,
        });
        let options = FixtureOptions {
            modules: modules.collect(),
            gpu_driver: None,
            ..FixtureOptions::default()
        };
        let node = Node::with(name, &options);
        let wrong = Driver {
            modules: (0..16)
                .map(|n| format!("module {n} with a name that is none"))
                .collect(),
            openib_conf: (0..16)
                .map(|n| (format!("UNKNOWN_KEY_{n}"), "yes".to_owned()))
                .collect(),
            ..Driver::default()
        };
        let asks = enforce(NodeConfig {
            driver: wrong,
            ..NodeConfig::default()
        });
        let first = turn(&node, &asks).await.status;
        let size = serde_json::to_vec(&first).unwrap().len();
        assert!(size <= 16 * 1024, "{name}: {size}");
        let again = cycle(
            &node.settings,
            &mut Session::default(),
            &asks,
            Some(&first),
            Timestamp::now(),
        )
        .await
        .unwrap();
        assert_eq!(again.status, first, "{name}");
    }
}

#[tokio::test]
async fn many_failures_with_long_messages_still_fit() {
    let mut node = Node::new("h100-class-8gpu-36nic-vf32-bond4");
    node.settings.chroot = stand_in(
        &node,
        "#!/bin/sh\nhead -c 4000 /proc/self/maps >&2\nexit 1\n",
    );
    let modules = (0..64).map(|n| format!("module_{n:02}")).collect();
    let asks = enforce(NodeConfig {
        driver: Driver {
            modules,
            ..Driver::default()
        },
        ..NodeConfig::default()
    });
    let status = turn(&node, &asks).await.status;
    let size = serde_json::to_vec(&status).unwrap().len();
    assert!(size <= 16 * 1024, "{size}");
    assert_eq!(status.plan.unwrap().actions.len(), 64);
}
