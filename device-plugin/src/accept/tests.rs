use super::*;
use crate::sample;

fn judged(change: impl FnOnce(&mut NodeFile)) -> Reading {
    let mut file = sample::node_file(2);
    change(&mut file);
    judge(
        &serde_json::to_string(&file).unwrap(),
        &format!("{}\n", sample::BOOT),
    )
}

fn refusal(change: impl FnOnce(&mut NodeFile)) -> String {
    match judged(change) {
        Reading::Unusable(why) => why,
        other => panic!("taken: {other:?}"),
    }
}

#[test]
fn takes_a_file_of_this_boot() {
    assert_eq!(
        judged(|_| {}),
        Reading::Good(Box::new(sample::node_file(2)))
    );
}

#[test]
fn tells_another_boot_from_a_broken_file() {
    let other = judged(|file| file.boot_id = "other".to_owned());
    assert_eq!(
        other,
        Reading::OtherBoot {
            file: "other".to_owned(),
            host: sample::BOOT.to_owned()
        }
    );
    assert!(matches!(judge("{", sample::BOOT), Reading::Unusable(_)));
    assert!(matches!(judge("", sample::BOOT), Reading::Unusable(_)));
}

#[test]
fn refuses_what_the_kubelet_would_stumble_over() {
    let cases: [(&str, String); 5] = [
        (
            "not an extended resource name",
            refusal(|f| f.resources[0].name = "gpudirect".to_owned()),
        ),
        (
            "is there twice",
            refusal(|f| f.resources.push(f.resources[0].clone())),
        ),
        (
            "device id",
            refusal(|f| f.resources[0].devices[1].id = sample::id(0)),
        ),
        (
            "empty id",
            refusal(|f| f.resources[0].devices[1].id.clear()),
        ),
        (
            "no RDMA device name",
            refusal(|f| f.resources[0].devices[0].nics[0].rdma = "../../etc".to_owned()),
        ),
    ];
    for (part, text) in cases {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn refuses_a_list_beyond_the_kubelets_limit() {
    let why = refusal(|file| {
        let replica = |n: usize| NodeDevice {
            id: format!("{}-{n}", "x".repeat(4000)),
            ..sample::device(0, 1)
        };
        file.resources[0].devices = (0..1100).map(replica).collect();
    });
    assert!(why.contains("the kubelet takes 4194304"), "{why}");
}

#[test]
fn extended_resource_names() {
    for good in ["rdma/gpudirect", "nvidia.com/gpu", "gpurdma.dev/Pair_2.x"] {
        assert!(is_extended_resource(good), "{good}");
    }
    let bad = [
        "",
        "cpu",
        "/x",
        "x/",
        "kubernetes.io/x",
        "a.kubernetes.io/x",
        "requests.rdma/x",
        "a/b/c",
        "A/b",
        "a_b/c",
        "a..b/c",
    ];
    for bad in bad {
        assert!(!is_extended_resource(bad), "{bad}");
    }
    assert!(
        !is_extended_resource(&format!("{}/x", "a".repeat(253))),
        "no room for the quota prefix"
    );
    assert!(!is_extended_resource(&format!("rdma/{}", "a".repeat(64))));
}

#[test]
fn absence_of_the_file_and_failure_to_read_differ() {
    let dir = tempfile::tempdir().unwrap();
    let source = Source {
        node_file: dir.path().join("node.json"),
        boot_id_file: dir.path().join("boot_id"),
    };
    assert_eq!(source.fetch(), Raw::Gone);
    std::fs::create_dir(&source.node_file).unwrap();
    assert!(matches!(source.fetch(), Raw::Unreadable(_)));
    std::fs::remove_dir(&source.node_file).unwrap();
    std::fs::write(&source.node_file, "{}").unwrap();
    assert!(matches!(source.fetch().judge(), Reading::Unusable(why) if why.contains("boot_id")));
    std::fs::write(&source.boot_id_file, sample::BOOT).unwrap();
    assert!(matches!(source.fetch(), Raw::Texts { .. }));
}
