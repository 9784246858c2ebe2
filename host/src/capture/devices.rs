//! PCI functions, RDMA devices and network interfaces.

use super::Capture;
use super::mask::{Masks, resource};
use crate::machine::express::without_identity;
use crate::machine::functions::DEVICES;
use crate::machine::nics::{INFINIBAND, NET, VERBS};
use crate::parse::deepest_function;
use crate::root::RootError;

/// Files of a PCI function that are copied as they are.
const PCI_FILES: &[&str] = &[
    "class",
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "numa_node",
    "local_cpulist",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
];

pub(super) fn copy(capture: &mut Capture<'_>) -> Result<(), RootError> {
    for name in capture.names(DEVICES) {
        function(capture, &name)?;
    }
    for name in capture.names(INFINIBAND) {
        rdma_device(capture, &name)?;
    }
    for name in capture.names(VERBS) {
        let Some(to) = class_entry(capture, VERBS, &name)? else {
            continue;
        };
        let from = format!("{VERBS}/{name}");
        capture.plain(&from, &to, &["dev"])?;
        capture.text(
            &format!("{from}/ibdev"),
            &format!("{to}/ibdev"),
            Masks::name,
        )?;
    }
    for name in capture.names(NET) {
        netdev(capture, &name)?;
    }
    Ok(())
}

fn function(capture: &mut Capture<'_>, name: &str) -> Result<(), RootError> {
    let link = format!("{DEVICES}/{name}");
    let Some(real) = capture.real(&link) else {
        return Ok(());
    };
    capture.into.create_dir_all(&real)?;
    capture.into.put_link(&link, &real)?;
    capture.plain(&real, &real, PCI_FILES)?;
    capture.text(
        &format!("{real}/resource"),
        &format!("{real}/resource"),
        |_, text| resource(text),
    )?;
    for link in ["physfn", "iommu_group"] {
        capture.link(&format!("{real}/{link}"), &format!("{real}/{link}"))?;
    }
    if let Some(group) = capture.real(&format!("{real}/iommu_group")) {
        capture.plain(&group, &group, &["type"])?;
    }
    config(capture, &format!("{real}/config"))
}

fn config(capture: &mut Capture<'_>, path: &str) -> Result<(), RootError> {
    match capture.from.bytes(path) {
        Ok(bytes) => capture.into.put(path, without_identity(&bytes)),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => {
            capture.left_out.push(error.chain());
            Ok(())
        }
    }
}

/// The entry's directory under its masked name, linked from the class as on the machine. `None` for a dangling link.
fn class_entry(
    capture: &mut Capture<'_>,
    class: &str,
    name: &str,
) -> Result<Option<String>, RootError> {
    let link = format!("{class}/{name}");
    let Some(real) = capture.real(&link) else {
        return Ok(None);
    };
    let (masked, real) = (capture.masks.path(&link), capture.masks.path(&real));
    capture.into.create_dir_all(&real)?;
    if real != masked {
        capture.into.put_link(&masked, &real)?;
    }
    capture.link(&format!("{link}/device"), &format!("{real}/device"))?;
    Ok(Some(real))
}

fn rdma_device(capture: &mut Capture<'_>, name: &str) -> Result<(), RootError> {
    let from = format!("{INFINIBAND}/{name}");
    let Some(to) = class_entry(capture, INFINIBAND, name)? else {
        return Ok(());
    };
    capture.plain(&from, &to, &["fw_ver", "hca_type", "board_id", "node_type"])?;
    for file in ["node_guid", "sys_image_guid"] {
        capture.text(
            &format!("{from}/{file}"),
            &format!("{to}/{file}"),
            Masks::guid,
        )?;
    }
    capture.text(
        &format!("{from}/parent"),
        &format!("{to}/parent"),
        Masks::name,
    )?;
    function_lists(capture, &from)?;
    for port in capture.names(&format!("{from}/ports")) {
        rdma_port(
            capture,
            &format!("{from}/ports/{port}"),
            &format!("{to}/ports/{port}"),
        )?;
    }
    Ok(())
}

/// The function's own lists of its interfaces, which may be there without the classes.
fn function_lists(capture: &mut Capture<'_>, from: &str) -> Result<(), RootError> {
    let Some(device) = capture.real(&format!("{from}/device")) else {
        return Ok(());
    };
    for list in ["infiniband_verbs", "net"] {
        for name in capture.names(&format!("{device}/{list}")) {
            let to = capture.masks.path(&format!("{device}/{list}/{name}"));
            capture.into.create_dir_all(&to)?;
        }
    }
    Ok(())
}

fn rdma_port(capture: &mut Capture<'_>, from: &str, to: &str) -> Result<(), RootError> {
    capture.into.create_dir_all(to)?;
    capture.plain(
        from,
        to,
        &["state", "phys_state", "link_layer", "rate", "lid", "sm_lid"],
    )?;
    for index in capture.names(&format!("{from}/pkeys")) {
        capture.plain(
            &format!("{from}/pkeys"),
            &format!("{to}/pkeys"),
            &[index.as_str()],
        )?;
    }
    for index in capture.names(&format!("{from}/gids")) {
        let Ok(gid) = capture.from.text(&format!("{from}/gids/{index}")) else {
            continue;
        };
        // Unused entries are many, and the kernel refuses to tell their attributes.
        if gid.bytes().all(|byte| matches!(byte, b'0' | b':')) {
            continue;
        }
        capture.text(
            &format!("{from}/gids/{index}"),
            &format!("{to}/gids/{index}"),
            Masks::gid,
        )?;
        capture.plain(
            &format!("{from}/gid_attrs/types"),
            &format!("{to}/gid_attrs/types"),
            &[index.as_str()],
        )?;
        let netdevs = "gid_attrs/ndevs";
        capture.text(
            &format!("{from}/{netdevs}/{index}"),
            &format!("{to}/{netdevs}/{index}"),
            Masks::name,
        )?;
    }
    Ok(())
}

/// Interfaces of PCI functions, and bonds; the others tell about pods and users.
fn netdev(capture: &mut Capture<'_>, name: &str) -> Result<(), RootError> {
    let from = format!("{NET}/{name}");
    let of_hardware = capture
        .real(&format!("{from}/device"))
        .is_some_and(|path| deepest_function(&path).is_some());
    if !of_hardware && capture.real(&format!("{from}/bonding")).is_none() {
        return Ok(());
    }
    let Some(to) = class_entry(capture, NET, name)? else {
        return Ok(());
    };
    capture.plain(&from, &to, &["mtu", "operstate", "speed"])?;
    capture.text(
        &format!("{from}/address"),
        &format!("{to}/address"),
        Masks::mac,
    )?;
    capture.text(
        &format!("{from}/bonding/slaves"),
        &format!("{to}/bonding/slaves"),
        Masks::names,
    )?;
    capture.link(&format!("{from}/master"), &format!("{to}/master"))
}
