use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use nix::sched::{CloneFlags, unshare};
use topology::fact::Fact;

use super::*;
use crate::action::{Change, EcnSide, Netdev};
use crate::guard::{self, Intent, Timing, guarded};

fn netdev(name: &str, index: u32) -> Netdev {
    Netdev {
        name: name.to_owned(),
        index,
    }
}

fn port() -> RdmaPort {
    RdmaPort {
        device: "mlx5_0".to_owned(),
        port: 1,
        netdev: netdev("eth0", 2),
    }
}

/// A tree whose first process has the network namespace of this thread.
fn tree() -> (tempfile::TempDir, Settings) {
    let directory = tempfile::tempdir().unwrap();
    let namespaces = directory.path().join("proc/1/ns");
    std::fs::create_dir_all(&namespaces).unwrap();
    std::fs::create_dir_all(directory.path().join("var/lib/gpurdma")).unwrap();
    let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    std::os::unix::fs::symlink(own, namespaces.join("net")).unwrap();
    let settings = Settings::new(Root::new(directory.path()));
    (directory, settings)
}

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {output:?}");
}

/// Runs `work` in a network namespace of its own, with interfaces `rail-a` and `rail-b` that are two ends of one cable. Without the
/// right to make one there is nothing to see, and the test says so.
fn in_namespace(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            return println!("no network namespace: {error}");
        }
        ip("link add name rail-a type veth peer name rail-b");
        ip("link set dev rail-a up");
        ip("link set dev rail-b up");
        work();
    });
    thread.join().unwrap();
}

fn of(settings: &Settings, name: &str) -> Netdev {
    netdev(name, seen::link(&settings.root, name).unwrap().index)
}

#[test]
fn the_kernel_takes_mtu_state_and_addresses_and_gives_them_back() {
    in_namespace(|| {
        let (_keep, settings) = tree();
        let a = of(&settings, "rail-a");
        let mtu = |mtu| FabricChange::Mtu {
            netdev: a.clone(),
            mtu,
        };
        let up = |up| FabricChange::Up {
            netdev: a.clone(),
            up,
        };
        let address = |text: &str, present| FabricChange::Address {
            netdev: a.clone(),
            address: text.parse().unwrap(),
            present,
        };
        let both_ways = [
            (mtu(4200), mtu(1500)),
            (up(false), up(true)),
            (
                address("10.10.0.7/16", true),
                address("10.10.0.7/16", false),
            ),
            (
                address("fd00:10::7/64", true),
                address("fd00:10::7/64", false),
            ),
        ];
        for (change, undo) in &both_ways {
            assert!(
                verify(&settings, change).is_err(),
                "{change:?} is there before"
            );
            // Twice: what is done already is no error.
            for change in [change, change, undo, undo] {
                perform(&settings, change).unwrap();
                verify(&settings, change).unwrap();
            }
        }
    });
}

#[test]
fn what_the_kernel_refuses_is_told_in_its_words() {
    in_namespace(|| {
        let (_keep, settings) = tree();
        let netdev = of(&settings, "rail-a");
        let error = perform(&settings, &FabricChange::Mtu { netdev, mtu: 70000 }).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("mtu greater than device maximum"),
            "{error}"
        );
    });
}

#[test]
fn an_interface_that_was_made_anew_is_another_one() {
    in_namespace(|| {
        let (_keep, settings) = tree();
        let before = of(&settings, "rail-a");
        ip("link delete dev rail-a");
        ip("link add name rail-a type veth peer name rail-b");
        let error = perform(
            &settings,
            &FabricChange::Mtu {
                netdev: before,
                mtu: 4200,
            },
        )
        .unwrap_err();
        assert!(
            matches!(&error, ExecuteError::Refused { why, .. } if why.contains("made anew")),
            "{error}"
        );
        assert_eq!(seen::link(&settings.root, "rail-a").unwrap().mtu, 1500);
    });
}

#[test]
fn another_machines_interfaces_are_never_touched() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings::new(Root::new(directory.path()));
        let change = FabricChange::Mtu {
            netdev: netdev("rail-a", 2),
            mtu: 4200,
        };
        let error = perform(&settings, &change).unwrap_err();
        assert!(
            matches!(&error, ExecuteError::Refused { why, .. } if why.contains("network namespace"))
        );
    });
}

/// Another namespace with a server, at the far end of the cable; it lives until the sender goes.
fn server(done: mpsc::Receiver<()>) -> nix::libc::pid_t {
    let (told, tell) = mpsc::channel();
    std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        told.send(nix::unistd::gettid().as_raw()).unwrap();
        while !Command::new("ip")
            .args(["address", "add", "10.9.0.2/24", "dev", "rail-b"])
            .output()
            .unwrap()
            .status
            .success()
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        ip("link set dev rail-b up");
        let listener = TcpListener::bind("10.9.0.2:6443").unwrap();
        // Connections wait in the kernel's queue: nobody needs to take them.
        assert!(done.recv().is_err());
        drop(listener);
    });
    tell.recv().unwrap()
}

/// Waits until a server at the far end answers.
fn until_reachable(servers: &guard::Servers) {
    let begun = std::time::Instant::now();
    while servers.reach().is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the server does not answer"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The interface to the API server goes down, and the agent itself brings it up again.
#[test]
fn a_node_that_cuts_itself_off_comes_back() {
    in_namespace(|| {
        let (until, done) = mpsc::channel();
        let far = server(done);
        ip(&format!("link set dev rail-b netns {far}"));
        ip("address add 10.9.0.1/24 dev rail-a");
        let (_keep, settings) = tree();
        let a = of(&settings, "rail-a");
        let kubelet = host::facts::network::ApiServer {
            host: "10.9.0.2".to_owned(),
            port: 6443,
            addresses: std::collections::BTreeSet::new(),
        };
        let servers = guard::servers(&Fact::Known(vec![kubelet]), None)
            .unwrap()
            .unwrap();
        until_reachable(&servers);
        let change = |up| {
            Change::Fabric(FabricChange::Up {
                netdev: a.clone(),
                up,
            })
        };
        let intent = Intent {
            change: change(false),
            undo: change(true),
            boot_id: "boot-1".to_owned(),
            at: Time("2026-03-01T12:00:00Z".parse().unwrap()),
        };
        let timing = Timing {
            patience: Duration::from_secs(1),
            pause: Duration::from_millis(100),
        };
        let mut act = |change: &Change| match change {
            Change::Fabric(change) => perform(&settings, change),
            other => panic!("{other:?}"),
        };
        let result = guarded(
            &settings.root,
            &intent,
            timing,
            &|| servers.reach(),
            &mut act,
        );
        assert!(
            matches!(result, Err(ExecuteError::RolledBack { .. })),
            "{result:?}"
        );
        until_reachable(&servers);
        drop(until);
    });
}

/// What an out-of-tree driver and RDMA-CM show, before anything is set.
fn put_attributes(root: &std::path::Path) {
    let files = [
        ("sys/class/net/rail-a/ecn/roce_np/enable/3", "0\n"),
        ("sys/class/net/rail-a/qos/trust", "pcp\n"),
        ("sys/class/infiniband/mlx5_0/tc/1/traffic_class", ""),
        (
            "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode",
            "IB/RoCE v1\n",
        ),
        (
            "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos",
            "0\n",
        ),
    ];
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn attributes_are_written_where_the_driver_has_them_and_read_again() {
    in_namespace(|| {
        let (keep, settings) = tree();
        put_attributes(keep.path());
        let a = of(&settings, "rail-a");
        let port = RdmaPort {
            netdev: a.clone(),
            ..port()
        };
        let changes = [
            FabricChange::Ecn {
                netdev: a.clone(),
                side: EcnSide::Notification,
                priority: 3,
                on: true,
            },
            FabricChange::RoceMode {
                port: port.clone(),
                v2: true,
            },
            FabricChange::Tos {
                port: port.clone(),
                tos: 106,
            },
            FabricChange::TrafficClass { port, class: 106 },
        ];
        for change in &changes {
            assert!(verify(&settings, change).is_err(), "{change:?}");
            perform(&settings, change).unwrap();
            verify(&settings, change).unwrap();
        }
        let trust = FabricChange::Trust {
            netdev: a.clone(),
            dscp: true,
        };
        perform(&settings, &trust).unwrap();
        assert_eq!(
            settings
                .root
                .text("/sys/class/net/rail-a/qos/trust")
                .unwrap(),
            "dscp"
        );
        let gone = FabricChange::Ecn {
            netdev: a,
            side: EcnSide::Reaction,
            priority: 3,
            on: true,
        };
        assert!(
            perform(&settings, &gone).is_err(),
            "a driver without the file is told"
        );
    });
}
