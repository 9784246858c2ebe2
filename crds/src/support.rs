//! Which set fields have no effect yet. Pure; the operator turns the answer into the condition `NotYetSupported`
//! and keeps the cluster from Ready.

use crate::cluster::{DevicePlugin, GpuRdmaClusterSpec, Inject, Takeover};

/// Paths of the fields that are set and whose effect is not built yet, sorted.
#[must_use]
pub fn not_yet_supported(spec: &GpuRdmaClusterSpec) -> Vec<&'static str> {
    let mut fields = Vec::new();
    device_plugin(&spec.device_plugin, &mut fields);
    fields.sort_unstable();
    fields
}

fn push(fields: &mut Vec<&'static str>, path: &'static str, set: bool) {
    if set {
        fields.push(path);
    }
}

fn device_plugin(plugin: &DevicePlugin, fields: &mut Vec<&'static str>) {
    let Inject {
        nccl_topo_file,
        nccl_ib_hca,
        ucx_net_devices,
        nvshmem_hca_list,
    } = plugin.inject;
    push(
        fields,
        "devicePlugin.takeover",
        plugin.takeover == Takeover::Adopt,
    );
    push(fields, "devicePlugin.inject.ncclTopoFile", nccl_topo_file);
    push(fields, "devicePlugin.inject.ncclIbHca", nccl_ib_hca);
    push(fields, "devicePlugin.inject.ucxNetDevices", ucx_net_devices);
    push(
        fields,
        "devicePlugin.inject.nvshmemHcaList",
        nvshmem_hca_list,
    );
}

#[cfg(test)]
mod tests;
