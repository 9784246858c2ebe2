use std::os::unix::fs::symlink;

use super::*;

const UID: &str = "8a1d5c3e-0f4b-4c7a-9a66-1f0f5d5b2c11";

/// A `/proc` with the files given, and a process that has an RDMA device open.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let open = directory.path().join("proc/4711/fd");
    std::fs::create_dir_all(&open).unwrap();
    symlink("/dev/infiniband/uverbs3", open.join("7")).unwrap();
    symlink("/dev/infiniband/uverbs3", open.join("8")).unwrap();
    symlink("/dev/infiniband/umad0", open.join("9")).unwrap();
    symlink("socket:[1234]", open.join("3")).unwrap();
    directory
}

fn users(files: &[(&str, &str)], answers: &ToolAnswers) -> RdmaUsers {
    let directory = machine(files);
    read(&Root::new(directory.path()), answers)
}

#[test]
fn a_process_with_an_open_device_is_named_with_its_pod() {
    let group = format!(
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-1.scope\n",
        UID.replace('-', "_")
    );
    let log = format!("var/log/pods/team_job-0_{UID}/main/0.log");
    let files = [
        ("proc/4711/comm", "python3\n"),
        ("proc/4711/cgroup", group.as_str()),
        ("proc/1/comm", "systemd\n"),
        (log.as_str(), ""),
    ];
    let answers = ToolAnswers {
        rdma_queue_pairs: Fact::Known(r#"[{"ifname":"mlx5_3","lqpn":1,"type":"GSI","comm":"ib_core"},{"ifname":"mlx5_3","lqpn":200,"type":"RC","pid":4711,"comm":"python3"}]"#.to_owned()),
        ..ToolAnswers::default()
    };
    let found = users(&files, &answers).processes;
    let process = &found.known().unwrap()[..];
    assert_eq!(process.len(), 1);
    assert_eq!(
        (process[0].pid, process[0].name.as_str()),
        (4711, "python3")
    );
    assert_eq!(process[0].devices, ["uverbs3"]);
    assert_eq!(process[0].queue_pairs, Fact::Known(1));
    assert_eq!(process[0].pod.as_ref().unwrap().display(), "team/job-0");
}

#[test]
fn control_groups_of_both_drivers_name_the_pod() {
    let cgroupfs = format!("11:devices:/kubepods/besteffort/pod{UID}/0123\n");
    let systemd = format!(
        "0::/kubepods.slice/kubepods-pod{}.slice/crio-1.scope\n",
        UID.replace('-', "_")
    );
    let nested = format!(
        "0::/../../kubepods-besteffort-pod{}.slice/x\n",
        UID.replace('-', "_")
    );
    for group in [cgroupfs, systemd, nested] {
        assert_eq!(pod_uid(&group).as_deref(), Some(UID), "{group}");
    }
    assert_eq!(pod_uid("0::/system.slice/podman.service\n"), None);
    assert_eq!(pod_uid("0::/kubepods.slice\n"), None);
}

#[test]
fn without_proc_nothing_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let users = read(&Root::new(directory.path()), &ToolAnswers::default());
    assert!(matches!(users.processes, Fact::Unreadable(_)));
    assert_eq!(users.kernel, Fact::Absent);
}

#[test]
fn a_module_above_the_stack_is_told_from_the_stack_and_from_its_use() {
    let modules = "mlx5_ib 1 0 - Live 0x0\nko2iblnd 1 1 - Live 0x0\nlnet 1 1 ko2iblnd, Live 0x0\nrpcrdma 1 0 - Live 0x0\nnvme_rdma 1 2 - Live 0x0\nrdma_cm 1 3 ko2iblnd,rpcrdma,nvme_rdma, Live 0x0\nib_core 1 5 rdma_cm,mlx5_ib,irdma,ko2iblnd,rpcrdma, Live 0x0\nirdma 1 0 - Live 0x0\n";
    let mounts = "10.0.0.1@o2ib:/scratch /scratch lustre rw 0 0\nsrv:/x /x nfs4 rw,proto=tcp 0 0\n";
    let files = [
        ("proc/modules", modules),
        ("proc/1/mounts", mounts),
        ("sys/class/nvme/nvme0/transport", "rdma\n"),
        ("sys/class/nvme/nvme1/transport", "pcie\n"),
    ];
    let answers = ToolAnswers {
        rdma_queue_pairs: Fact::Known("[]".to_owned()),
        rdma_connections: Fact::Known(
            r#"[{"ifname":"mlx5_0","cm-idn":1,"comm":"nvme_rdma","state":"CONNECT"}]"#.to_owned(),
        ),
        ..ToolAnswers::default()
    };
    let kernel = users(&files, &answers).kernel;
    let seen: Vec<_> = kernel
        .known()
        .unwrap()
        .iter()
        .map(|user| {
            (
                user.module.as_str(),
                user.references.known().copied(),
                user.connections.known().copied(),
                user.uses.join(" "),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("irdma", Some(0), Some(0), String::new()),
            ("ko2iblnd", Some(1), Some(0), "mount /scratch".to_owned()),
            ("nvme_rdma", Some(2), Some(1), "nvme0".to_owned()),
            ("rpcrdma", Some(0), Some(0), String::new()),
        ]
    );
}
