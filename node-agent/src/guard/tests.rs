use std::net::TcpListener;
use std::sync::Mutex;

use host::facts::network::ApiServer;
use topology::fact::Fact;

use super::*;
use crate::action::{FabricChange, Netdev};

const QUICK: Timing = Timing {
    patience: Duration::from_millis(300),
    pause: Duration::from_millis(20),
};

fn root() -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("var/lib/gpurdma")).unwrap();
    let root = Root::new(directory.path());
    (directory, root)
}

fn mtu(mtu: u32) -> Change {
    let netdev = Netdev {
        name: "eth0".to_owned(),
        index: 2,
    };
    Change::Fabric(FabricChange::Mtu { netdev, mtu })
}

fn intent() -> Intent {
    Intent {
        change: mtu(9000),
        undo: mtu(1500),
        boot_id: "boot-1".to_owned(),
        at: Time("2026-03-01T12:00:00Z".parse().unwrap()),
    }
}

fn server(port: u16) -> Servers {
    let server = ApiServer {
        host: "127.0.0.1".to_owned(),
        port,
        addresses: std::collections::BTreeSet::new(),
    };
    servers(&Fact::Known(vec![server]), None).unwrap().unwrap()
}

#[test]
fn a_change_that_leaves_the_server_reachable_stays() {
    let (_keep, root) = root();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let servers = server(listener.local_addr().unwrap().port());
    let mut done = Vec::new();
    let mut act = |change: &Change| {
        assert!(
            root.bytes(GUARD_FILE).is_ok(),
            "the intent is on disk before"
        );
        done.push(change.clone());
        Ok(())
    };
    guarded(&root, &intent(), QUICK, &|| servers.reach(), &mut act).unwrap();
    assert_eq!(done, [mtu(9000)]);
    assert!(root.bytes(GUARD_FILE).is_err(), "and gone after");
}

/// The change closes the server's socket, its way back opens it again: as a wrong MTU or PFC cuts a node off.
#[test]
fn a_change_that_cuts_the_node_off_is_taken_back() {
    let (_keep, root) = root();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let servers = server(address.port());
    let socket = Mutex::new(Some(listener));
    let mut act = |change: &Change| {
        let open = *change == mtu(1500);
        let mut socket = socket.lock().unwrap();
        *socket = None;
        *socket = open.then(|| TcpListener::bind(address).unwrap());
        Ok(())
    };
    let error = guarded(&root, &intent(), QUICK, &|| servers.reach(), &mut act).unwrap_err();
    assert!(matches!(error, ExecuteError::RolledBack { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(servers.reach().is_ok());
    assert!(root.bytes(GUARD_FILE).is_err());
}

#[test]
fn a_server_that_comes_back_in_time_is_enough() {
    let (_keep, root) = root();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let servers = server(listener.local_addr().unwrap().port());
    let tries = std::cell::Cell::new(0);
    let reach = || {
        tries.set(tries.get() + 1);
        if tries.get() < 4 {
            return Err("the link is down".to_owned());
        }
        servers.reach()
    };
    guarded(&root, &intent(), QUICK, &reach, &mut |_| Ok(())).unwrap();
    assert_eq!(tries.get(), 4);
}

#[test]
fn a_way_back_that_fails_is_tried_again_at_the_next_start() {
    let (_keep, root) = root();
    let mut act = |change: &Change| {
        if *change == mtu(1500) {
            return Err(ExecuteError::Refused {
                what: "eth0".to_owned(),
                why: "no such interface".to_owned(),
            });
        }
        Ok(())
    };
    let reach = || Err("no route".to_owned());
    let error = guarded(&root, &intent(), QUICK, &reach, &mut act).unwrap_err();
    assert!(
        matches!(&error, ExecuteError::Stranded { undo, .. } if undo.contains("no such interface"))
    );
    let mut done = Vec::new();
    let mut act = |change: &Change| {
        done.push(change.clone());
        Ok(())
    };
    assert_eq!(recover(&root, "boot-1", &mut act).unwrap(), Some(intent()));
    assert_eq!(done, [mtu(1500)]);
}

#[test]
fn a_crash_in_between_is_taken_back_and_counted_as_failed() {
    let (_keep, root) = root();
    let intent = intent();
    let mut attempts = Attempts::default();
    attempts.begin(&intent.change, "2026-03-01T12:00:00Z".parse().unwrap());
    write_json(&root, ATTEMPTS_FILE, &attempts).unwrap();
    let mut journal = Journal::default();
    journal.changing(&intent.change, &intent.undo, "boot-1", intent.at.clone());
    write_json(&root, JOURNAL_FILE, &journal).unwrap();
    write_json(&root, GUARD_FILE, &intent).unwrap();
    let mut done = Vec::new();
    let mut act = |change: &Change| {
        done.push(change.clone());
        Ok(())
    };
    assert_eq!(
        recover(&root, "boot-1", &mut act).unwrap(),
        Some(intent.clone())
    );
    assert_eq!(
        recover(&root, "boot-1", &mut |_| panic!("once")).unwrap(),
        None
    );
    assert_eq!(done, [mtu(1500)]);
    let attempts: Attempts = read_json(&root, ATTEMPTS_FILE).unwrap().unwrap();
    let (count, error) = attempts.of(&intent.change);
    assert_eq!((count, error.is_some()), (1, true));
    let journal: Journal = read_json(&root, JOURNAL_FILE).unwrap().unwrap();
    assert!(journal.changed.is_empty());
}

#[test]
fn a_change_of_an_earlier_boot_needs_no_way_back() {
    let (_keep, root) = root();
    write_json(&root, GUARD_FILE, &intent()).unwrap();
    let mut act = |_: &Change| panic!("gone with the boot");
    assert_eq!(recover(&root, "boot-2", &mut act).unwrap(), None);
    assert!(root.bytes(GUARD_FILE).is_err());
}

#[test]
fn without_a_kubelet_there_is_no_server_and_an_unreadable_one_stops_everything() {
    assert_eq!(servers(&Fact::Absent, None), Ok(None));
    assert!(servers(&Fact::Unreadable("EIO".to_owned()), None).is_err());
    let given = ("127.0.0.1".to_owned(), 6443);
    assert!(servers(&Fact::Absent, Some(&given)).unwrap().is_some());
    let wrong = ApiServer {
        host: "no such host".to_owned(),
        port: 1,
        addresses: std::collections::BTreeSet::new(),
    };
    assert!(servers(&Fact::Known(vec![wrong]), None).is_err());
}
