//! Module files: what they are, and whether they are what is loaded.

use object::write::{Object, StandardSection, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};

use super::super::modules::ModuleFile;
use super::*;

/// A module file as the kernel's build makes it: what it offers and what it needs, with checksums.
fn module(srcversion: &str, offers: Option<u32>, needs: Option<u32>) -> Vec<u8> {
    let mut elf = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let modinfo = format!("version=24.10-1.1.4\0srcversion={srcversion}\0vermagic={RELEASE} SMP\0");
    let section = elf.add_section(Vec::new(), b".modinfo".to_vec(), SectionKind::ReadOnlyData);
    elf.append_section_data(section, modinfo.as_bytes(), 1);
    let symbol = |name: &str, value, section| Symbol {
        name: name.as_bytes().to_vec(),
        value,
        size: 0,
        kind: SymbolKind::Data,
        scope: SymbolScope::Linkage,
        weak: false,
        section,
        flags: SymbolFlags::None,
    };
    if let Some(checksum) = offers {
        let data = elf.section_id(StandardSection::ReadOnlyData);
        let at = elf.append_section_data(data, &checksum.to_le_bytes(), 4);
        let name = "__crc_ib_register_peer_memory_client";
        elf.add_symbol(symbol(name, at, SymbolSection::Section(data)));
    }
    if let Some(checksum) = needs {
        let mut entry = u64::from(checksum).to_le_bytes().to_vec();
        entry.extend(b"ib_register_peer_memory_client\0");
        entry.resize(64, 0);
        let versions = elf.add_section(
            Vec::new(),
            b"__versions".to_vec(),
            SectionKind::ReadOnlyData,
        );
        elf.append_section_data(versions, &entry, 8);
        elf.add_symbol(symbol(
            "ib_register_peer_memory_client",
            0,
            SymbolSection::Undefined,
        ));
    }
    elf.write().unwrap()
}

fn file(root: &Root, name: &str) -> ModuleFile {
    install(root).modules.fact.known().unwrap()[name].clone()
}

#[test]
fn a_module_file_tells_what_it_is_and_whether_it_is_what_is_loaded() {
    let (directory, root) = machine(&[
        (
            "lib/modules/6.8.0-100-generic/modules.dep",
            "updates/dkms/ib-core.ko: \nkernel/ib_core.ko:\nextra/nvidia-peermem.ko: updates/dkms/ib-core.ko\nextra/ib_umad.ko.zst:\n",
        ),
        ("proc/modules", "ib_core 1 0 - Live 0x0\n"),
        ("sys/module/ib_core/srcversion", "OLD\n"),
    ]);
    let place = "lib/modules/6.8.0-100-generic";
    put(
        directory.path(),
        &format!("{place}/updates/dkms/ib-core.ko"),
        module("NEW", Some(7), None),
    );
    put(
        directory.path(),
        &format!("{place}/extra/nvidia-peermem.ko"),
        module("P", None, Some(9)),
    );
    put(
        directory.path(),
        &format!("{place}/extra/ib_umad.ko.zst"),
        "packed",
    );
    let core = file(&root, "ib_core");
    assert_eq!(
        core.path,
        format!("/{place}/updates/dkms/ib-core.ko"),
        "the first line counts"
    );
    let info = core.info.known().unwrap();
    assert_eq!(info.source_version, Fact::Known("NEW".to_owned()));
    assert_eq!(
        (&info.peer_memory_export, &info.peer_memory_import),
        (&Fact::Known(7), &Fact::Absent)
    );
    assert_eq!(
        core.is_loaded,
        Fact::Known(false),
        "installed and loaded are two facts"
    );
    let peermem = file(&root, "nvidia_peermem");
    assert_eq!(
        peermem.info.known().unwrap().peer_memory_import,
        Fact::Known(9)
    );
    assert_eq!(peermem.is_loaded, Fact::Absent);
    let packed = file(&root, "ib_umad");
    assert!(matches!(packed.info, Fact::Unreadable(why) if why.contains("ib_umad.ko.zst")));
    let again = install_since(&root, Some(&install(&root)));
    assert_eq!(again.modules.fact.known().unwrap()["ib_core"], core);
}

#[test]
fn a_damaged_module_file_is_unreadable_and_one_in_a_driver_container_is_found() {
    let container = "run/nvidia/driver/lib/modules/6.8.0-100-generic";
    let (directory, root) = machine(&[
        (
            "lib/modules/6.8.0-100-generic/modules.dep",
            "kernel/mlx5_core.ko:\n",
        ),
        (
            "lib/modules/6.8.0-100-generic/kernel/mlx5_core.ko",
            "no ELF",
        ),
        (
            "run/nvidia/driver/lib/modules/6.8.0-100-generic/modules.dep",
            "kernel/nvidia-peermem.ko:\n",
        ),
        ("run/nvidia/driver/usr/bin/nvidia-smi", ""),
        ("run/nvidia/validations/driver-ready", ""),
    ]);
    put(
        directory.path(),
        &format!("{container}/kernel/nvidia-peermem.ko"),
        module("P", None, None),
    );
    assert!(matches!(file(&root, "mlx5_core").info, Fact::Unreadable(_)));
    let peermem = file(&root, "nvidia_peermem");
    assert_eq!(
        peermem.path,
        format!("/{container}/kernel/nvidia-peermem.ko")
    );
    assert_eq!(
        peermem.info.known().unwrap().peer_memory_import,
        Fact::Absent,
        "built without OFED"
    );
    let gpu = install(&root).gpu;
    assert!(gpu.in_container() && gpu.owned_by_operator());
}

/// Ubuntu 24.04 ships `.ko.zst`, Fedora and RHEL `.ko.xz`.
#[test]
fn a_compressed_module_file_tells_what_it_is() {
    let packed: [(&str, &[u8]); 3] = [
        ("ib_core.ko.xz", include_bytes!("packed/tiny.ko.xz")),
        ("mlx5_core.ko.zst", include_bytes!("packed/tiny.ko.zst")),
        ("rdma_cm.ko.gz", include_bytes!("packed/tiny.ko.gz")),
    ];
    let place = format!("lib/modules/{RELEASE}");
    let index = packed.map(|(name, _)| format!("kernel/{name}:\n")).concat();
    let (directory, root) = machine(&[
        (&format!("{place}/modules.dep"), &index),
        ("proc/modules", "mlx5_core 1 0 - Live 0x0\n"),
        (
            "sys/module/mlx5_core/srcversion",
            "0A1B2C3D4E5F6A7B8C9D0E1\n",
        ),
    ]);
    for (name, bytes) in packed {
        put(directory.path(), &format!("{place}/kernel/{name}"), bytes);
    }
    for name in ["ib_core", "mlx5_core", "rdma_cm"] {
        let found = file(&root, name);
        let info = found.info.known().unwrap();
        let known = |text: &str| Fact::Known(text.to_owned());
        assert_eq!(info.version, known("24.10-1.1.4"), "{name}");
        assert_eq!(info.source_version, known("0A1B2C3D4E5F6A7B8C9D0E1"));
        assert_eq!(info.peer_memory_export, Fact::Absent);
    }
    assert_eq!(file(&root, "mlx5_core").is_loaded, Fact::Known(true));
}
