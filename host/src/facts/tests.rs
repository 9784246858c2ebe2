use topology::fact::Fact;

use super::driver::{Flavour, GpuDriver};
use super::{Facts, facts};
use crate::machine::Options;
use crate::root::Root;

fn read(files: &[(&str, &str)]) -> Facts {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    facts(&Root::new(directory.path()), &Options::default(), None)
}

fn driver(line: &str) -> Fact<GpuDriver> {
    read(&[("proc/driver/nvidia/version", line)])
        .gpu_driver
        .fact
}

#[test]
fn an_empty_machine_has_absent_facts_and_a_note() {
    let facts = read(&[]);
    assert_eq!(facts.boot_id.fact, Fact::Absent);
    assert_eq!(facts.modules.fact, Fact::Absent);
    assert_eq!(facts.peer_memory_symbol.fact, Fact::Absent);
    assert_eq!(facts.gpu_driver.fact, Fact::Absent);
    assert!(facts.topology_files.is_empty());
    assert_eq!(
        facts.machine.notes,
        ["/sys/bus/pci/devices is absent: no PCI bus is visible"]
    );
}

#[test]
fn the_gpu_driver_is_told_by_version_and_flavour() {
    let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder)\nGCC version: 12";
    let closed =
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023";
    let known = |version: &str, flavour| {
        Fact::Known(GpuDriver {
            version: version.to_owned(),
            flavour,
        })
    };
    assert_eq!(driver(open), known("570.86.15", Flavour::Open));
    assert_eq!(driver(closed), known("535.129.03", Flavour::Proprietary));
    assert!(
        matches!(driver("NVRM version: something else"), Fact::Unreadable(why) if why.contains("NVRM version"))
    );
}

#[test]
fn modules_are_found_in_sysfs_where_proc_does_not_list_them() {
    let facts = read(&[
        ("sys/module/mlx5_core/initstate", "live\n"),
        ("sys/module/mlx5_core/refcnt", "1\n"),
        ("sys/module/mlx5_core/coresize", "2097152\n"),
        ("sys/module/mlx5_core/holders/mlx5_ib/initstate", "live\n"),
        ("sys/module/printk/parameters/time", "Y\n"),
    ]);
    let Fact::Known(modules) = facts.modules.fact else {
        panic!("{:?}", facts.modules);
    };
    assert_eq!(modules.len(), 1, "a built-in module is not a loaded one");
    assert_eq!(modules[0].holders, ["mlx5_ib"]);
    assert_eq!(
        (modules[0].size.clone(), modules[0].references.clone()),
        (Fact::Known(2_097_152), Fact::Known(1))
    );
    assert_eq!(modules[0].state, "Live");
    let odd = read(&[("sys/module/mlx5_core/initstate", "asleep\n")]);
    assert!(
        matches!(odd.modules.fact, Fact::Unreadable(_)),
        "{:?}",
        odd.modules
    );
}

#[test]
fn modules_come_with_holders_and_versions() {
    let text = "mlx5_ib 479232 0 - Live 0x0000000000000000\nib_core 507904 3 rdma_cm,mlx5_ib, Live 0x0 (OE)\nold 1 - - Live 0x0\n";
    let facts = read(&[
        ("proc/modules", text),
        ("sys/module/ib_core/srcversion", "ABC\n"),
    ]);
    let Fact::Known(modules) = facts.modules.fact else {
        panic!()
    };
    assert_eq!(
        modules
            .iter()
            .map(|module| module.name.as_str())
            .collect::<Vec<_>>(),
        ["ib_core", "mlx5_ib", "old"]
    );
    assert_eq!(modules[0].holders, ["mlx5_ib", "rdma_cm"]);
    assert_eq!(
        (&modules[0].references, &modules[0].source_version),
        (&Fact::Known(3), &Fact::Known("ABC".to_owned()))
    );
    assert_eq!(
        (&modules[1].version, &modules[1].size),
        (&Fact::Absent, &Fact::Known(479_232))
    );
    assert_eq!(modules[2].references, Fact::Absent);
    let garbage = read(&[("proc/modules", "mlx5_ib much 0 - Live 0x0")]);
    assert!(
        matches!(garbage.modules.fact, Fact::Unreadable(why) if why.starts_with("read /proc/modules: `mlx5_ib much"))
    );
}

#[test]
fn the_peer_memory_symbol_is_matched_whole() {
    let symbol = |line: &str| read(&[("proc/kallsyms", line)]).peer_memory_symbol.fact;
    assert_eq!(
        symbol("0 t a\n0000000000000000 T ib_register_peer_memory_client\t[ib_core]\n"),
        Fact::Known(true)
    );
    assert_eq!(
        symbol("0 r __ksymtab_ib_register_peer_memory_client\t[ib_core]\n"),
        Fact::Known(false)
    );
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("proc/kallsyms")).unwrap();
    let facts = facts(&Root::new(directory.path()), &Options::default(), None);
    assert!(
        matches!(facts.peer_memory_symbol.fact, Fact::Unreadable(why) if why.contains("directory"))
    );
}

#[test]
fn the_distribution_is_read_with_and_without_quotes() {
    let text = "PRETTY_NAME=\"Rocky Linux 9.4\"\nID=\"rocky\"\nID_LIKE='rhel centos fedora'\nVERSION_ID=\"9.4\"\n";
    let facts = read(&[("etc/os-release", text)]);
    let os = facts.os.fact.known().unwrap();
    assert_eq!(
        (os.id.as_str(), os.version_id.as_deref()),
        ("rocky", Some("9.4"))
    );
    assert_eq!(os.id_like, ["rhel", "centos", "fedora"]);
    assert_eq!(
        read(&[("etc/os-release", "ID=arch\n")])
            .os
            .fact
            .known()
            .unwrap()
            .version_id,
        None
    );
    assert!(matches!(
        read(&[("etc/os-release", "NAME=x\n")]).os.fact,
        Fact::Unreadable(_)
    ));
}

#[test]
fn a_virtual_processor_says_so_and_an_arm_one_cannot() {
    let flag = |text: &str| read(&[("proc/cpuinfo", text)]).hypervisor.fact;
    assert_eq!(flag("flags\t\t: fpu hypervisor sse\n"), Fact::Known(true));
    assert_eq!(flag("flags\t\t: fpu sse\n"), Fact::Known(false));
    assert_eq!(flag("Features\t: fp asimd\n"), Fact::Absent);
}

#[test]
fn topology_files_are_those_that_nccl_would_read() {
    let conf =
        "# site\nNCCL_TOPO_FILE=/old.xml\n NCCL_TOPO_FILE = /etc/topo.xml \nNCCL_DEBUG=INFO\n";
    let virtual_file = "var/run/nvidia-topologyd/virtualTopology.xml";
    let facts = read(&[
        ("etc/nccl.conf", conf),
        ("etc/topo.xml", "<system/>"),
        (virtual_file, "<x/>"),
    ]);
    assert_eq!(
        facts.nccl_topo_file.fact,
        Fact::Known("/etc/topo.xml".to_owned())
    );
    let found: Vec<_> = facts
        .topology_files
        .iter()
        .map(|file| (file.source.as_str(), file.fact.known()))
        .collect();
    assert_eq!(found[0], ("/etc/topo.xml", Some(&"<system/>".to_owned())));
    assert_eq!(found[1].0, "/var/run/nvidia-topologyd/virtualTopology.xml");
    let gone = read(&[("etc/nccl.conf", conf)]);
    assert_eq!(
        gone.topology_files[0].fact,
        Fact::Absent,
        "a file that is named and missing is shown"
    );
}

#[test]
fn facts_are_printed_in_camel_case_with_their_sources() {
    let facts = read(&[("proc/sys/kernel/random/boot_id", "7f\n")]);
    let json = serde_json::to_value(&facts).unwrap();
    assert_eq!(json["bootId"]["source"], "/proc/sys/kernel/random/boot_id");
    assert_eq!(json["bootId"]["fact"]["known"], "7f");
    assert_eq!(json["peerMemorySymbol"]["fact"], "absent");
}
