use host::facts::install::packages::Package;

use super::matrix::built_in;
use super::*;

fn os(id: &str, like: &[&str], version: &str) -> OsRelease {
    OsRelease {
        id: id.to_owned(),
        id_like: like.iter().map(|&text| text.to_owned()).collect(),
        version_id: Some(version.to_owned()),
        name: None,
    }
}

fn nic(device: u16, firmware: &str) -> NicSeen {
    NicSeen {
        name: "mlx5_0".to_owned(),
        device: Some(device),
        firmware: Some(firmware.to_owned()),
    }
}

fn rows(node: &Node<'_>, package: &str, version: &str) -> Vec<(Weight, String)> {
    let wanted = wanted(package, version).unwrap();
    let verdicts = check(&built_in(), node, &wanted);
    verdicts
        .into_iter()
        .map(|verdict| (verdict.weight, verdict.row))
        .collect()
}

#[test]
fn a_node_that_fits_has_no_verdict() {
    let os = os("ubuntu", &["debian"], "22.04");
    let node = Node {
        os: Some(&os),
        nics: vec![nic(0x1021, "28.43.3608")],
        ..Node::default()
    };
    assert_eq!(rows(&node, "doca-ofed", "2.9.3-0.1"), []);
}

#[test]
fn a_release_beside_those_listed_is_refused_and_an_unlisted_distribution_is_not() {
    let jammy = os("ubuntu", &["debian"], "18.04");
    let node = |os| Node {
        os: Some(os),
        ..Node::default()
    };
    let refused = (Weight::Refused, "doca-3.2/systems".to_owned());
    assert_eq!(rows(&node(&jammy), "doca-ofed", "3.2.2"), [refused]);
    let alpine = os("alpine", &[], "3.20");
    let unlisted = (Weight::Unlisted, "doca-3.2/systems".to_owned());
    assert_eq!(rows(&node(&alpine), "doca-ofed", "3.2.2"), [unlisted]);
    let rocky = os("rocky", &["rhel", "centos"], "9.4");
    assert_eq!(rows(&node(&rocky), "doca-ofed", "3.2.2"), []);
}

#[test]
fn a_nic_that_a_release_no_longer_or_not_yet_supports_is_refused() {
    let with = |device| Node {
        nics: vec![nic(device, "99.1")],
        ..Node::default()
    };
    let refused = |row: &str| vec![(Weight::Refused, row.to_owned())];
    assert_eq!(
        rows(&with(0x1013), "doca-ofed", "3.2.2"),
        refused("nic-connectx-4")
    );
    assert_eq!(rows(&with(0x1013), "doca-ofed", "2.9.3"), []);
    assert_eq!(
        rows(&with(0x1023), "doca-ofed", "2.9.3"),
        refused("nic-connectx-8")
    );
    assert_eq!(rows(&with(0x1023), "doca-ofed", "2.10.0"), []);
    let alone = rows(&with(0xa2dc), "mlnx-ofed-kernel-dkms", "24.10-3.2.5.0");
    assert_eq!(alone, refused("nic-bluefield-3"));
    assert_eq!(
        rows(&with(0x101e), "doca-ofed", "3.2.2"),
        [],
        "a virtual function tells nothing"
    );
}

#[test]
fn older_firmware_is_a_doubt_within_its_family_only() {
    let with = |firmware: &str| Node {
        nics: vec![nic(0x1021, firmware)],
        ..Node::default()
    };
    let doubtful = (Weight::Doubtful, "fw-2.9-connectx-7".to_owned());
    assert_eq!(rows(&with("28.39.1002"), "doca-ofed", "2.9.3"), [doubtful]);
    assert_eq!(rows(&with("16.35.1000"), "doca-ofed", "2.9.3"), []);
}

/// G76: modules that DKMS signs load only where its key is enrolled.
#[test]
fn secure_boot_is_a_doubt_where_modules_are_built_on_the_node() {
    let node = Node {
        secure_boot: Some(true),
        ..Node::default()
    };
    let doubtful = (Weight::Doubtful, "doca-3.2/secure-boot".to_owned());
    assert_eq!(rows(&node, "doca-ofed", "3.2.2"), [doubtful]);
    assert_eq!(rows(&node, "doca-ofed", "2.9.3"), []);
}

#[test]
fn a_gpu_driver_older_than_an_installed_cuda_needs_is_refused() {
    let package = Package {
        version: "13.0.0-1".to_owned(),
        held: false,
        broken: None,
    };
    let installed: Installed = [("cuda-toolkit-13-0".to_owned(), package)].into();
    let node = Node {
        installed: Some(&installed),
        ..Node::default()
    };
    let refused = (Weight::Refused, "cuda-13.0".to_owned());
    assert_eq!(
        rows(&node, "nvidia-open", "575.57.08-1"),
        std::slice::from_ref(&refused)
    );
    assert_eq!(rows(&node, "nvidia-open", "580.60.01-1"), [refused]);
    assert_eq!(rows(&node, "nvidia-open", "580.95.05-1"), []);
    assert_eq!(
        rows(&node, "nvidia-open", "580"),
        [],
        "a branch stands for its newest release"
    );
}

#[test]
fn what_the_table_does_not_know_is_said_and_nothing_is_refused() {
    let unlisted = (Weight::Unlisted, "trains".to_owned());
    assert_eq!(rows(&Node::default(), "doca-ofed", "9.9.1"), [unlisted]);
    assert_eq!(wanted("mydriver", "1.0"), None);
    let tag = wanted_by_tag("doca3.2.2-25.10-1.2.8.0-2").unwrap();
    let expected = Wanted::Rdma {
        doca: Some("3.2.2".to_owned()),
        ofed: Some("25.10".to_owned()),
    };
    assert_eq!(tag, expected);
    assert_eq!(wanted_by_tag("latest"), None);
}
