use host::facts::tuning::users::Pod;

use super::*;

fn process(name: &str, pod: Option<&str>) -> RdmaProcess {
    RdmaProcess {
        pid: 812,
        name: name.to_owned(),
        pod: pod.map(|uid| Pod {
            uid: uid.to_owned(),
            namespace: Some("team".to_owned()),
            name: Some("job-0".to_owned()),
        }),
        devices: vec!["uverbs0".to_owned(), "uverbs1".to_owned()],
        queue_pairs: Fact::Known(4),
    }
}

fn module(name: &str, references: Fact<u64>, connections: Fact<u64>, uses: &[&str]) -> KernelUser {
    KernelUser {
        module: name.to_owned(),
        references,
        connections,
        uses: uses.iter().map(|&text| text.to_owned()).collect(),
    }
}

fn shown(processes: Vec<RdmaProcess>, kernel: Vec<KernelUser>, allowed: &[&str]) -> Vec<String> {
    let users = RdmaUsers {
        processes: Fact::Known(processes),
        kernel: Fact::Known(kernel),
    };
    let allowed = allowed.iter().map(|&uid| uid.to_owned()).collect();
    blocking(&users, &allowed)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn pods_and_processes_are_named_and_allowed_pods_are_not() {
    let both = || vec![process("python3", Some("u1")), process("ibacm", None)];
    assert_eq!(
        shown(both(), vec![], &[]),
        [
            "process ibacm (pid 812): it has uverbs0, uverbs1 open; stop it or its service",
            "pod team/job-0: its process python3 has an RDMA device open; wait for it or evict it",
        ]
    );
    assert_eq!(shown(both(), vec![], &["u1"]).len(), 1);
    let twice = vec![
        process("python3", Some("u1")),
        process("python3", Some("u1")),
    ];
    assert_eq!(shown(twice, vec![], &[]).len(), 1, "a pod is named once");
}

// O8: storage modules over RDMA block by name. rdma-core loads several of them wherever there is an RDMA device.
#[test]
fn a_storage_module_blocks_by_name_while_it_is_used_and_not_while_it_is_only_loaded() {
    let lustre = module(
        "ko2iblnd",
        Fact::Known(1),
        Fact::Known(0),
        &["mount /scratch"],
    );
    let idle = module("rpcrdma", Fact::Known(0), Fact::Known(0), &[]);
    let connected = module("nvme_rdma", Fact::Known(0), Fact::Known(3), &[]);
    let held = module("somefs", Fact::Known(2), Fact::Absent, &[]);
    assert_eq!(
        shown(vec![], vec![lustre, idle, connected, held], &[]),
        [
            "kernel user ko2iblnd (Lustre): mount /scratch; unmount Lustre, then `lustre_rmmod`",
            "kernel user nvme_rdma (NVMe over Fabrics): 3 queue pairs or connections; nvme disconnect the controllers of transport rdma",
            "kernel user somefs: 2 references; stop what uses somefs",
        ]
    );
}

#[test]
fn what_cannot_be_read_stands_in_the_way() {
    let users = RdmaUsers::default();
    let names: Vec<_> = blocking(&users, &BTreeSet::new())
        .into_iter()
        .map(|b| (b.what, b.name))
        .collect();
    assert_eq!(
        names,
        [
            (What::Unknown, "kernel users".to_owned()),
            (What::Unknown, "processes".to_owned())
        ]
    );
    let hidden = module("ib_isert", Fact::Absent, Fact::Absent, &[]);
    assert_eq!(shown(vec![], vec![hidden], &[]).len(), 1);
}
