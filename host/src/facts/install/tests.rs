mod modules;

use std::path::Path;

use super::boot::Boot;
use super::packages::{ASK_RPM, Manager};
use super::*;

const RELEASE: &str = "6.8.0-100-generic";

fn put(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// A machine that runs [`RELEASE`] and has these files.
fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "proc/sys/kernel/osrelease", RELEASE);
    for (path, content) in files {
        put(directory.path(), path, content);
    }
    let root = Root::new(directory.path());
    (directory, root)
}

fn read(files: &[(&str, &str)]) -> Install {
    install(&machine(files).1)
}

fn boot(files: &[(&str, &str)]) -> Boot {
    read(files).boot
}

#[test]
fn an_empty_machine_has_absent_facts_and_nothing_made_up() {
    let facts = read(&[]);
    assert_eq!(facts.boot.page_size.fact, Fact::Absent);
    assert_eq!(facts.boot.secure_boot.fact, Fact::Absent, "no UEFI");
    assert_eq!(facts.boot.next_kernel, Fact::Absent);
    assert_eq!(facts.dkms.fact, Fact::Absent);
    assert_eq!(facts.modules.fact, Fact::Absent);
    assert_eq!(facts.packages.manager.fact, Fact::Absent);
    assert_eq!(facts.packages.installed.fact, Fact::Absent);
    assert!(facts.gpu.roots.is_empty());
}

#[test]
fn page_size_lockdown_and_secure_boot() {
    let smaps =
        "55d0-55d1 r--p 00000000 fd:00 1 /sbin/init\nSize: 4 kB\nKernelPageSize:       64 kB\n";
    let found = boot(&[
        ("proc/1/smaps", smaps),
        (
            "sys/kernel/security/lockdown",
            "none [integrity] confidentiality\n",
        ),
    ]);
    assert_eq!(found.page_size.fact, Fact::Known(65536));
    assert_eq!(found.lockdown.fact, Fact::Known("integrity".to_owned()));
    let variable = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    let secure = |bytes: &str| boot(&[(variable, bytes)]).secure_boot.fact;
    assert_eq!(secure("\x06\0\0\0\x01"), Fact::Known(true));
    assert_eq!(secure("\x06\0\0\0\0"), Fact::Known(false));
    assert!(matches!(secure("\x06\0"), Fact::Unreadable(_)));
    let unmounted = boot(&[("sys/firmware/efi/fw_platform_size", "64")])
        .secure_boot
        .fact;
    assert!(matches!(unmounted, Fact::Unreadable(why) if why.contains("not mounted")));
}

#[test]
fn the_kernels_options_are_read_from_the_first_place_that_has_them() {
    let text = "CONFIG_PCI_P2PDMA=y\n# CONFIG_MODULE_SIG_FORCE is not set\n";
    let found = boot(&[("boot/config-6.8.0-100-generic", text)]);
    let options = found.config.fact.known().unwrap();
    assert_eq!(options["CONFIG_PCI_P2PDMA"], "y");
    assert_eq!(options["CONFIG_MODULE_SIG_FORCE"], "n");
    let (directory, root) = machine(&[]);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, b"CONFIG_DMA_SHARED_BUFFER=y\n").unwrap();
    put(directory.path(), "proc/config.gz", packed.finish().unwrap());
    let found = install(&root).boot.config;
    assert_eq!(found.source, "/proc/config.gz");
    assert_eq!(found.fact.known().unwrap()["CONFIG_DMA_SHARED_BUFFER"], "y");
    put(directory.path(), "proc/config.gz", "no gzip");
    assert!(matches!(
        install(&root).boot.config.fact,
        Fact::Unreadable(_)
    ));
}

#[test]
fn the_kernel_that_boots_next_is_named_by_the_loaders_entry() {
    let kernels = [
        ("boot/vmlinuz-6.8.0-100-generic", ""),
        ("boot/vmlinuz-6.8.0-101-generic", ""),
        ("boot/vmlinuz-0-rescue-1234", ""),
        ("lib/modules/6.8.0-100-generic/modules.dep", ""),
        ("lib/modules/6.8.0-9-generic/build", ""),
    ];
    let next = |files: &[(&str, &str)]| {
        let found = boot(&[kernels.as_slice(), files].concat());
        (found.next_entry.source.clone(), found.next_kernel)
    };
    let known = |release: &str| Fact::Known(release.to_owned());
    let saved = "# GRUB Environment Block\nsaved_entry=gnulinux-advanced>gnulinux-6.8.0-100-generic-advanced-1\n####";
    assert_eq!(next(&[("boot/grub/grubenv", saved)]).1, known(RELEASE));
    let once = "saved_entry=x-6.8.0-100-generic\nnext_entry=x-6.8.0-101-generic\n";
    assert_eq!(
        next(&[("boot/grub2/grubenv", once)]).1,
        known("6.8.0-101-generic")
    );
    let newest = next(&[
        ("boot/grub/grubenv", "# empty"),
        ("etc/default/grub", "GRUB_DEFAULT=0\n"),
    ]);
    assert_eq!(
        newest,
        ("/etc/default/grub".to_owned(), known("6.8.0-101-generic"))
    );
    let systemd = next(&[(
        "boot/loader/loader.conf",
        "timeout 3\ndefault id-6.8.0-100-generic.conf\n",
    )]);
    assert_eq!(systemd.1, known(RELEASE));
    let odd = next(&[("boot/grub/grubenv", "saved_entry=windows\n")]).1;
    assert!(matches!(odd, Fact::Unreadable(why) if why.contains("windows")));
    let listed = boot(&kernels).kernels.fact;
    let listed = listed.known().unwrap();
    assert_eq!(
        listed.len(),
        2,
        "neither a rescue image nor a left-over is a kernel: {listed:?}"
    );
    assert!(listed[RELEASE].modules && listed[RELEASE].image);
}

#[test]
fn dkms_builds_are_told_from_installed_and_failed_ones() {
    let (directory, root) = machine(&[
        (
            "var/lib/dkms/mlnx-ofed-kernel/24.10/6.8.0-100-generic/x86_64/module/mlx5_core.ko",
            "",
        ),
        (
            "var/lib/dkms/mlnx-ofed-kernel/24.10/build/make.log",
            "DKMS make.log for mlnx-ofed-kernel-24.10 for kernel 6.8.0-101-generic (x86_64)\n",
        ),
        ("var/lib/dkms/nvidia/570.1/source/dkms.conf", ""),
    ]);
    let link = directory
        .path()
        .join("var/lib/dkms/mlnx-ofed-kernel/kernel-6.8.0-100-generic-x86_64");
    std::os::unix::fs::symlink("24.10/6.8.0-100-generic/x86_64", link).unwrap();
    let found = install(&root).dkms.fact;
    let modules = found.known().unwrap();
    assert_eq!(modules.len(), 2);
    let ofed = &modules[0];
    assert_eq!(
        (ofed.name.as_str(), ofed.version.as_str()),
        ("mlnx-ofed-kernel", "24.10")
    );
    assert_eq!(ofed.builds.len(), 1);
    assert!(ofed.builds[0].installed && ofed.builds[0].built_at.known().is_some());
    assert_eq!(ofed.failed, Fact::Known("6.8.0-101-generic".to_owned()));
    assert_eq!(
        (modules[1].builds.len(), &modules[1].failed),
        (0, &Fact::Absent)
    );
}

const STATUS: &str = "Package: doca-ofed\nStatus: install ok installed\nVersion: 3.2.2-1\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n\nPackage: rdma-core\nStatus: hold ok installed\nDescription: x\n more: text\nVersion: 50.0-2\n\nPackage: nvidia-dkms\nStatus: install ok half-configured\nVersion: 570\n";

#[test]
fn dpkgs_database_is_read_with_holds_and_half_done_packages() {
    let found = read(&[
        ("var/lib/dpkg/status", STATUS),
        ("usr/bin/apt-get", ""),
        ("var/lib/dpkg/updates/0001", ""),
    ])
    .packages;
    assert_eq!(found.manager.fact, Fact::Known(Manager::Apt));
    assert_eq!(found.interrupted.fact, Fact::Known(true));
    let installed = found.installed.fact.known().unwrap();
    assert_eq!(
        installed.len(),
        3,
        "what left only its configuration is not installed"
    );
    assert_eq!(installed["doca-ofed"].version, "3.2.2-1");
    assert!(installed["rdma-core"].held && !installed["doca-ofed"].held);
    assert_eq!(
        installed["nvidia-dkms"].broken.as_deref(),
        Some("half-configured")
    );
}

#[test]
fn an_rpm_database_is_left_to_rpm() {
    let found = read(&[("usr/bin/dnf", ""), ("var/lib/rpm/rpmdb.sqlite", "x")]).packages;
    assert_eq!(found.manager.fact, Fact::Known(Manager::Dnf));
    assert_eq!(found.installed.source, "/var/lib/rpm/rpmdb.sqlite");
    assert_eq!(found.installed.fact, Fact::Unreadable(ASK_RPM.to_owned()));
}

#[test]
fn image_based_and_read_only_hosts_say_so() {
    let why = |files: &[(&str, &str)]| read(files).packages.immutable.fact;
    let says = |fact: Fact<String>, word: &str| fact.known().is_some_and(|why| why.contains(word));
    assert!(says(why(&[("run/ostree-booted", "")]), "rpm-ostree"));
    assert!(says(
        why(&[("run/ostree-booted", ""), ("etc/os-release", "ID=rhcos\n")]),
        "RHCOS"
    ));
    assert!(says(why(&[("etc/os-release", "ID=talos\n")]), "Talos"));
    assert!(says(
        why(&[("etc/os-release", "ID=bottlerocket\n")]),
        "Bottlerocket"
    ));
    assert!(says(
        why(&[(
            "proc/1/mounts",
            "/dev/a / ext4 rw 0 0\n/dev/b /usr ext4 ro,relatime 0 0\n"
        )]),
        "read-only"
    ));
    assert_eq!(
        why(&[("proc/1/mounts", "/dev/a / ext4 rw,relatime 0 0\n")]),
        Fact::Absent
    );
}

#[test]
fn a_lock_is_one_that_is_held_now() {
    let (directory, root) = machine(&[("var/lib/dpkg/lock-frontend", "")]);
    assert_eq!(
        install(&root).packages.locks,
        Fact::Absent,
        "nobody looked at /proc/locks"
    );
    let metadata = std::fs::metadata(directory.path().join("var/lib/dpkg/lock-frontend")).unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    let locks = format!(
        "1: POSIX  ADVISORY  WRITE 4711 fd:00:{inode} 0 EOF\n2: FLOCK ADVISORY WRITE 1 fd:00:1 0 EOF\n"
    );
    put(directory.path(), "proc/locks", locks);
    let held = install(&root).packages.locks;
    assert_eq!(held.known().unwrap()["/var/lib/dpkg/lock-frontend"], 4711);
}

#[test]
fn what_driver_containers_and_old_builds_left_is_seen() {
    let (directory, root) = machine(&[
        (
            "etc/modprobe.d/blacklist-ofed-modules.conf",
            "# DOCA\nblacklist mlx5_core\nblacklist ib_core\n",
        ),
        (
            "proc/driver/nvidia/params",
            "GrdmaPciTopoCheckOverride: 2\nRegistryDwords: \"\"\n",
        ),
    ]);
    std::fs::create_dir_all(directory.path().join("usr/src/ofa_kernel")).unwrap();
    std::os::unix::fs::symlink(
        "x86_64/5.15.0-1",
        directory.path().join("usr/src/ofa_kernel/default"),
    )
    .unwrap();
    let found = install(&root);
    assert_eq!(
        found.blacklisted.fact.known().unwrap(),
        &["ib_core", "mlx5_core"]
    );
    assert_eq!(
        found.gpu.parameters.fact.known().unwrap()["GrdmaPciTopoCheckOverride"],
        "2"
    );
    assert_eq!(found.ofed_default.fact, Fact::Known("5.15.0-1".to_owned()));
}
