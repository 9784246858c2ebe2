//! The GPU driver, the kernel and the files of `etc` that matter.

use super::Capture;
use super::mask::xml;
use crate::facts::driver::{GPU_DRIVER, KALLSYMS, OPENIB_CONF, PEER_MEMORY};
use crate::facts::kernel::{BOOT_ID, MODULES, RELEASE};
use crate::facts::platform::{CPUINFO, OS_RELEASE, PRODUCT, VENDOR};
use crate::facts::topology_files::{NCCL_CONF, files};
use crate::machine::gpus::DRIVER_GPUS;
use crate::root::RootError;

/// The boot id of every capture.
const MASKED_BOOT_ID: &str = "00000000-0000-4000-8000-000000000000";

pub(super) fn copy(capture: &mut Capture<'_>) -> Result<(), RootError> {
    for path in [GPU_DRIVER, RELEASE, OS_RELEASE, PRODUCT, VENDOR, NCCL_CONF] {
        capture.text(path, path, |_, text| text.to_owned())?;
    }
    for name in capture.names(DRIVER_GPUS) {
        let path = format!("{DRIVER_GPUS}/{name}/information");
        capture.text(&path, &path, |masks, text| {
            lines(text, |line| match line.split_once("GPU-") {
                Some((before, uuid)) => format!(
                    "{before}{}",
                    masks.gpu_uuid(&format!("GPU-{}", uuid.trim()))
                ),
                None => line.to_owned(),
            })
        })?;
    }
    capture.text(BOOT_ID, BOOT_ID, |_, _| MASKED_BOOT_ID.to_owned())?;
    capture.text(CPUINFO, CPUINFO, |_, text| first_processor(text))?;
    capture.text(OPENIB_CONF, OPENIB_CONF, |_, text| {
        without_description(text)
    })?;
    for file in files(capture.from) {
        capture.text(&file.source, &file.source, |_, text| xml(text))?;
    }
    modules(capture)?;
    symbol(capture)
}

/// Every line changed.
fn lines(text: &str, change: impl FnMut(&str) -> String) -> String {
    text.lines().map(change).collect::<Vec<_>>().join("\n")
}

/// One processor says what all say; some boards print their serial number at the end.
fn first_processor(text: &str) -> String {
    let first = text.lines().take_while(|line| !line.trim().is_empty());
    first.collect::<Vec<_>>().join("\n")
}

/// `NODE_DESC` is the host's name, as a rule.
fn without_description(text: &str) -> String {
    lines(text, |line| {
        if line.trim().starts_with("NODE_DESC=") {
            "NODE_DESC=masked".to_owned()
        } else {
            line.to_owned()
        }
    })
}

/// Modules without their addresses in the kernel.
fn modules(capture: &mut Capture<'_>) -> Result<(), RootError> {
    let address = |line: &str| match line.rsplit_once(" 0x") {
        Some((before, _)) => format!("{before} 0x0000000000000000"),
        None => line.to_owned(),
    };
    capture.text(MODULES, MODULES, |_, text| lines(text, address))?;
    let text = capture.from.text(MODULES).unwrap_or_default();
    for name in text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
    {
        let directory = format!("/sys/module/{name}");
        capture.plain(&directory, &directory, &["version", "srcversion"])?;
    }
    Ok(())
}

/// Of all symbols the one that is asked for, where the list is readable.
fn symbol(capture: &mut Capture<'_>) -> Result<(), RootError> {
    match capture.from.any_line(KALLSYMS, |line| {
        line.split_whitespace().nth(2) == Some(PEER_MEMORY)
    }) {
        Ok(true) => capture.into.put(
            KALLSYMS,
            format!("0000000000000000 T {PEER_MEMORY}\t[ib_core]\n"),
        ),
        Ok(false) => capture.into.put(KALLSYMS, ""),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => {
            capture.left_out.push(error.chain());
            Ok(())
        }
    }
}
