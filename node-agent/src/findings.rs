//! Findings that the agent can make: their stable names and how bad each is. Pure; everybody who decides calls it.

use std::collections::{BTreeMap, BTreeSet};

use crds::node::{Finding, Severity};

/// Longest message; the whole status must stay below 16 KiB.
const MESSAGE_LIMIT: usize = 360;

/// The stable name of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingId {
    /// A field is set whose effect is not built yet.
    NotYetSupported,
    /// A field has a value that cannot be carried out.
    InvalidSpec,
    /// Part of the host could not be read.
    HostUnreadable,
    /// A file of the agent's own could not be read.
    StateUnreadable,
    /// Someone else changes what we set.
    ForeignOwner,
    /// Someone else acts on the host now.
    HostLocked,
    /// An action failed as often as its budget allows.
    AttemptsExhausted,
    /// There is no openib.conf and nothing that would read one.
    OpenibConfAbsent,
    /// openib.conf is more than assignments.
    OpenibConfNotPlain,
    /// A key is assigned more than once.
    OpenibConfDuplicate,
    /// A value is written and openibd has not read it yet.
    OpenibConfNotInEffect,
    /// There is an openib.conf and no openibd.
    OpenibConfWithoutOpenibd,
    /// Another device plugin advertises our GPUs.
    ForeignGpuAdvertiser,
    /// The kubelet did not say who holds which device.
    KubeletUnreachable,
    /// A GPU has no driver.
    NoGpuDriver,
    /// A GPU's UUID could not be read; the last one of this boot is used.
    GpuUuidUnreadable,
    /// No CDI specification of the NVIDIA toolkit has the GPU.
    GpuCdiSpecAbsent,
    /// A CDI specification could not be read.
    CdiSpecUnreadable,
    /// A GPU cannot be put into containers.
    GpuInjectionUnavailable,
    /// A NIC cannot be put into containers.
    RdmaInjectionUnavailable,
    /// A GPU or NIC belongs to no device, and why.
    DeviceLeftOver,
    /// A device keeps its old form until it is free.
    DeviceDeferred,
    /// Something that discovery found odd.
    MachineNote,
    /// The host's firewall keeps out what a job's start needs.
    FirewallBlocks,
    /// The host's firewall is kept by something that this agent does not drive.
    FirewallNotManaged,
    /// The firewall is asked for, and no address range is.
    FirewallWithoutRange,
    /// Access control services stay as they are, and why.
    AcsNotChanged,
    /// An IOMMU translates between GPU and NIC.
    IommuTranslating,
    /// A PCIe setting stays as it is, and why.
    PcieNotChanged,
    /// The namespace mode of RDMA devices is written and not in effect.
    RdmaNetnsNotInEffect,
    /// A setting is written into firmware and not in effect.
    FirmwareNotInEffect,
    /// A card has another link type and cannot change it.
    LinkTypeFixed,
    /// A function carries the node's own traffic and is not touched.
    ProtectedInterface,
    /// Containers may lock too little memory.
    RuntimeMemlockLimited,
    /// A driver that is asked for does not go with the node.
    CompatibilityRefused,
    /// A driver that is asked for goes with the node, with less than is meant.
    CompatibilityDoubtful,
    /// The compatibility table says nothing about a driver that is asked for.
    CompatibilityUnlisted,
    /// The platform does not allow what is asked.
    UnsupportedPlatform,
    /// A package is held at another version.
    PackageHeld,
    /// The package manager failed.
    PackageChangeFailed,
    /// Installed modules are not those that are loaded.
    DriverNotInEffect,
    /// The driver container's modules are not loaded.
    DriverContainerNotInEffect,
    /// The next kernel has no RDMA or GPU modules.
    KernelUpgradeNotReady,
    /// A build of RDMA or GPU modules failed.
    OfedDkmsBuildFailed,
    /// Modules are built against the OFED of another kernel.
    OfedDefaultLinkStale,
    /// RDMA modules are kept from loading by what a driver container left.
    RdmaModulesBlacklisted,
    /// The kernel refuses a module's signature.
    ModuleSignatureRejected,
    /// nvidia-peermem is loaded, and what is on disk would not load again.
    GpuModulesStale,
    /// nvidia-peermem does not load: it was built against another OFED, or none.
    PeermemBuiltAgainstOther,
    /// The RDMA driver offers no peer memory.
    PeerMemoryApiAbsent,
    /// The kernel has no peer-to-peer DMA.
    KernelWithoutP2pdma,
    /// A GPU that GPU-direct RDMA is not made for.
    GpuWithoutGpuDirect,
    /// What is to be done belongs to gpu-operator.
    GpuOperatorOwnsDriver,
    /// There is no way to GPU memory.
    GpuDirectUnavailable,
    /// Whether there is a way to GPU memory is unknown.
    GpuDirectUnknown,
    /// A NIC is the node's own, and is not paired.
    ManagementInterface,
    /// An address cannot be given: it is elsewhere, or another one is in its subnet.
    AddressConflict,
    /// There is no interface to give an address to.
    AddressWithoutInterface,
    /// Several rails of this node are in one subnet.
    RailsShareSubnet,
    /// The driver does not take an MTU.
    MtuImpossible,
    /// Interfaces of one path have different MTUs.
    MtuPathDiffers,
    /// The MTU of an InfiniBand group is smaller than asked.
    IpoibGroupMtu,
    /// Enhanced IPoIB has no connected mode.
    IpoibEnhanced,
    /// The subnet manager has not given a port a `P_Key`.
    PkeyNotGranted,
    /// A partition's child interface cannot be made.
    PkeyWithoutInterface,
    /// The driver cannot set a part of the quality of service.
    QosUnsupported,
}

impl FindingId {
    /// The name in the API, and how bad it is.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a table: one line for each finding")]
    pub fn row(self) -> (&'static str, Severity) {
        use Severity::{Error, Info, Warning};
        match self {
            Self::NotYetSupported => ("NOT_YET_SUPPORTED", Warning),
            Self::InvalidSpec => ("INVALID_SPEC", Warning),
            Self::HostUnreadable => ("HOST_UNREADABLE", Warning),
            Self::StateUnreadable => ("STATE_UNREADABLE", Warning),
            Self::ForeignOwner => ("FOREIGN_OWNER", Warning),
            Self::HostLocked => ("HOST_LOCKED", Warning),
            Self::AttemptsExhausted => ("ATTEMPTS_EXHAUSTED", Warning),
            Self::OpenibConfAbsent => ("OPENIB_CONF_ABSENT", Warning),
            Self::OpenibConfNotPlain => ("OPENIB_CONF_NOT_PLAIN", Warning),
            Self::OpenibConfDuplicate => ("OPENIB_CONF_DUPLICATE", Info),
            Self::OpenibConfNotInEffect => ("OPENIB_CONF_NOT_IN_EFFECT", Warning),
            Self::OpenibConfWithoutOpenibd => ("OPENIB_CONF_WITHOUT_OPENIBD", Warning),
            Self::ForeignGpuAdvertiser => ("FOREIGN_GPU_ADVERTISER", Error),
            Self::KubeletUnreachable => ("KUBELET_UNREACHABLE", Warning),
            Self::NoGpuDriver => ("NO_GPU_DRIVER", Error),
            Self::GpuUuidUnreadable => ("GPU_UUID_UNREADABLE", Warning),
            Self::GpuCdiSpecAbsent => ("GPU_CDI_SPEC_ABSENT", Info),
            Self::CdiSpecUnreadable => ("CDI_SPEC_UNREADABLE", Warning),
            Self::GpuInjectionUnavailable => ("GPU_INJECTION_UNAVAILABLE", Error),
            Self::RdmaInjectionUnavailable => ("RDMA_INJECTION_UNAVAILABLE", Error),
            Self::DeviceLeftOver => ("DEVICE_LEFT_OVER", Info),
            Self::DeviceDeferred => ("DEVICE_DEFERRED", Info),
            Self::MachineNote => ("MACHINE_NOTE", Info),
            Self::FirewallBlocks => ("FIREWALL_BLOCKS_BOOTSTRAP", Warning),
            Self::FirewallNotManaged => ("FIREWALL_NOT_MANAGED", Warning),
            Self::FirewallWithoutRange => ("FIREWALL_WITHOUT_RANGE", Info),
            Self::AcsNotChanged => ("ACS_NOT_CHANGED", Warning),
            Self::IommuTranslating => ("IOMMU_TRANSLATING", Warning),
            Self::PcieNotChanged => ("PCIE_NOT_CHANGED", Warning),
            Self::RdmaNetnsNotInEffect => ("RDMA_NETNS_NOT_IN_EFFECT", Warning),
            Self::FirmwareNotInEffect => ("FIRMWARE_NOT_IN_EFFECT", Warning),
            Self::LinkTypeFixed => ("LINK_TYPE_FIXED", Error),
            Self::ProtectedInterface => ("PROTECTED_INTERFACE", Warning),
            Self::RuntimeMemlockLimited => ("RUNTIME_MEMLOCK_LIMITED", Warning),
            Self::CompatibilityRefused => ("COMPATIBILITY_REFUSED", Error),
            Self::CompatibilityDoubtful => ("COMPATIBILITY_DOUBTFUL", Warning),
            Self::CompatibilityUnlisted => ("COMPATIBILITY_UNLISTED", Info),
            Self::UnsupportedPlatform => ("UNSUPPORTED_PLATFORM", Warning),
            Self::PackageHeld => ("PACKAGE_HELD", Warning),
            Self::PackageChangeFailed => ("PACKAGE_CHANGE_FAILED", Warning),
            Self::DriverNotInEffect => ("DRIVER_NOT_IN_EFFECT", Warning),
            Self::DriverContainerNotInEffect => ("DRIVER_CONTAINER_NOT_IN_EFFECT", Warning),
            Self::KernelUpgradeNotReady => ("KERNEL_UPGRADE_NOT_READY", Warning),
            Self::OfedDkmsBuildFailed => ("OFED_DKMS_BUILD_FAILED", Warning),
            Self::OfedDefaultLinkStale => ("OFED_DEFAULT_LINK_STALE", Warning),
            Self::RdmaModulesBlacklisted => ("RDMA_MODULES_BLACKLISTED", Warning),
            Self::ModuleSignatureRejected => ("MODULE_SIGNATURE_REJECTED", Error),
            Self::GpuModulesStale => ("GPU_MODULES_STALE_AFTER_OFED_UPGRADE", Error),
            Self::PeermemBuiltAgainstOther => ("PEERMEM_BUILT_AGAINST_OTHER_OFED", Error),
            Self::PeerMemoryApiAbsent => ("PEER_MEMORY_API_ABSENT", Info),
            Self::KernelWithoutP2pdma => ("KERNEL_WITHOUT_P2PDMA", Warning),
            Self::GpuWithoutGpuDirect => ("GPU_WITHOUT_GPUDIRECT_RDMA", Error),
            Self::GpuOperatorOwnsDriver => ("GPU_OPERATOR_OWNS_DRIVER", Info),
            Self::GpuDirectUnavailable => ("GPU_DIRECT_UNAVAILABLE", Error),
            Self::GpuDirectUnknown => ("GPU_DIRECT_UNKNOWN", Warning),
            Self::ManagementInterface => ("MANAGEMENT_INTERFACE", Info),
            Self::AddressConflict => ("ADDRESS_CONFLICT", Warning),
            Self::AddressWithoutInterface => ("ADDRESS_WITHOUT_INTERFACE", Warning),
            Self::RailsShareSubnet => ("RAILS_SHARE_SUBNET", Warning),
            Self::MtuImpossible => ("MTU_IMPOSSIBLE", Warning),
            Self::MtuPathDiffers => ("MTU_PATH_DIFFERS", Info),
            Self::IpoibGroupMtu => ("IPOIB_GROUP_MTU", Warning),
            Self::IpoibEnhanced => ("IPOIB_ENHANCED", Warning),
            Self::PkeyNotGranted => ("PKEY_NOT_GRANTED", Warning),
            Self::PkeyWithoutInterface => ("PKEY_WITHOUT_INTERFACE", Warning),
            Self::QosUnsupported => ("QOS_UNSUPPORTED", Warning),
        }
    }

    /// The finding about `component`.
    #[must_use]
    pub fn about(self, component: impl Into<String>, message: impl AsRef<str>) -> Finding {
        let (id, severity) = self.row();
        let message = shorten(message.as_ref(), MESSAGE_LIMIT);
        Finding {
            id: id.to_owned(),
            severity,
            component: component.into(),
            message,
        }
    }
}

/// Longest list of components in one finding.
const COMPONENT_LIMIT: usize = 120;

/// Worst first, then by name; findings that differ in their component only are one finding.
pub fn sort(findings: &mut Vec<Finding>) {
    let mut merged: BTreeMap<(Severity, String, String), BTreeSet<String>> = BTreeMap::new();
    for Finding {
        id,
        severity,
        component,
        message,
    } in findings.drain(..)
    {
        merged
            .entry((severity, id, message))
            .or_default()
            .insert(component);
    }
    findings.extend(
        merged
            .into_iter()
            .map(|((severity, id, message), components)| {
                let all = components.into_iter().collect::<Vec<_>>().join(", ");
                Finding {
                    id,
                    severity,
                    component: shorten(&all, COMPONENT_LIMIT),
                    message,
                }
            }),
    );
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (f.severity, f.id.clone(), f.component.clone());
        key(a).cmp(&key(b))
    });
}

/// The text, cut to `limit` characters.
#[must_use]
pub fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(limit - 1).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests;
