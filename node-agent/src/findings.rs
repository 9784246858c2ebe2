//! Findings that the agent can make: their stable names and how bad each is. Pure; everybody who decides calls it.
//! [`catalogue`] has a page for each.

use std::collections::{BTreeMap, BTreeSet};

use crds::node::{Finding, Severity};

pub mod catalogue;

/// Longest message; the whole status must stay below 16 KiB.
const MESSAGE_LIMIT: usize = 360;

/// Declares [`FindingId`]: what is seen, the name in the API, how bad it is. Its page stands in `findings/catalogue/`.
macro_rules! findings {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal, $severity:ident;)+) => {
        /// The stable name of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FindingId { $($(#[$doc])+ $variant,)+ }

        impl FindingId {
            /// Every finding there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name in the API, and how bad it is.
            #[must_use]
            pub fn row(self) -> (&'static str, Severity) {
                match self { $(Self::$variant => ($name, Severity::$severity),)+ }
            }
        }
    };
}

findings! {
    /// A field has a value that cannot be carried out.
    InvalidSpec = "INVALID_SPEC", Warning;
    /// Part of the host could not be read.
    HostUnreadable = "HOST_UNREADABLE", Warning;
    /// A file of the agent's own could not be read.
    StateUnreadable = "STATE_UNREADABLE", Warning;
    /// Someone else changes what we set.
    ForeignOwner = "FOREIGN_OWNER", Warning;
    /// Someone else acts on the host now.
    HostLocked = "HOST_LOCKED", Warning;
    /// An action failed as often as its budget allows.
    AttemptsExhausted = "ATTEMPTS_EXHAUSTED", Warning;
    /// There is no openib.conf and nothing that would read one.
    OpenibConfAbsent = "OPENIB_CONF_ABSENT", Warning;
    /// openib.conf is more than assignments.
    OpenibConfNotPlain = "OPENIB_CONF_NOT_PLAIN", Warning;
    /// A key is assigned more than once.
    OpenibConfDuplicate = "OPENIB_CONF_DUPLICATE", Info;
    /// A value is written and openibd has not read it yet.
    OpenibConfNotInEffect = "OPENIB_CONF_NOT_IN_EFFECT", Warning;
    /// There is an openib.conf and no openibd.
    OpenibConfWithoutOpenibd = "OPENIB_CONF_WITHOUT_OPENIBD", Warning;
    /// Another device plugin advertises our GPUs.
    ForeignGpuAdvertiser = "FOREIGN_GPU_ADVERTISER", Error;
    /// The kubelet did not say who holds which device.
    KubeletUnreachable = "KUBELET_UNREACHABLE", Warning;
    /// A GPU has no driver.
    NoGpuDriver = "NO_GPU_DRIVER", Error;
    /// A GPU's UUID could not be read; the last one of this boot is used.
    GpuUuidUnreadable = "GPU_UUID_UNREADABLE", Warning;
    /// No CDI specification of the NVIDIA toolkit has the GPU.
    GpuCdiSpecAbsent = "GPU_CDI_SPEC_ABSENT", Info;
    /// A CDI specification could not be read.
    CdiSpecUnreadable = "CDI_SPEC_UNREADABLE", Warning;
    /// A GPU cannot be put into containers.
    GpuInjectionUnavailable = "GPU_INJECTION_UNAVAILABLE", Error;
    /// A NIC cannot be put into containers.
    RdmaInjectionUnavailable = "RDMA_INJECTION_UNAVAILABLE", Error;
    /// A GPU or NIC belongs to no device, and why.
    DeviceLeftOver = "DEVICE_LEFT_OVER", Info;
    /// A device keeps its old form until it is free.
    DeviceDeferred = "DEVICE_DEFERRED", Info;
    /// Something that discovery found odd.
    MachineNote = "MACHINE_NOTE", Info;
    /// The host's firewall keeps out what a job's start needs.
    FirewallBlocks = "FIREWALL_BLOCKS_BOOTSTRAP", Warning;
    /// The host's firewall is kept by something that this agent does not drive.
    FirewallNotManaged = "FIREWALL_NOT_MANAGED", Warning;
    /// The firewall is asked for, and no address range is.
    FirewallWithoutRange = "FIREWALL_WITHOUT_RANGE", Info;
    /// Ports send traffic between a GPU and its NIC up to the root complex.
    AcsRedirects = "ACS_REDIRECT_ON_GDR_PATH", Warning;
    /// Access control services stay as they are, and why.
    AcsNotChanged = "ACS_NOT_CHANGED", Warning;
    /// An IOMMU translates between GPU and NIC.
    IommuTranslating = "IOMMU_TRANSLATING", Warning;
    /// A PCIe setting stays as it is, and why.
    PcieNotChanged = "PCIE_NOT_CHANGED", Warning;
    /// A PCIe link has fewer lanes or less speed than its device.
    PcieLinkDegraded = "PCIE_LINK_DEGRADED", Warning;
    /// Pods with a network of their own cannot open RDMA devices.
    RdmaNetnsModeConflict = "RDMA_NETNS_MODE_CONFLICT", Error;
    /// The namespace mode of RDMA devices is written and not in effect.
    RdmaNetnsNotInEffect = "RDMA_NETNS_NOT_IN_EFFECT", Warning;
    /// A setting is written into firmware and not in effect.
    FirmwareNotInEffect = "FIRMWARE_NOT_IN_EFFECT", Warning;
    /// A card has another link type and cannot change it.
    LinkTypeFixed = "LINK_TYPE_FIXED", Error;
    /// A function carries the node's own traffic and is not touched.
    ProtectedInterface = "PROTECTED_INTERFACE", Warning;
    /// Containers may lock too little memory.
    RuntimeMemlockLimited = "RUNTIME_MEMLOCK_LIMITED", Warning;
    /// A driver that is asked for does not go with the node.
    CompatibilityRefused = "COMPATIBILITY_REFUSED", Error;
    /// A driver that is asked for goes with the node, with less than is meant.
    CompatibilityDoubtful = "COMPATIBILITY_DOUBTFUL", Warning;
    /// The compatibility table says nothing about a driver that is asked for.
    CompatibilityUnlisted = "COMPATIBILITY_UNLISTED", Info;
    /// The platform does not allow what is asked.
    UnsupportedPlatform = "UNSUPPORTED_PLATFORM", Warning;
    /// A package is held at another version.
    PackageHeld = "PACKAGE_HELD", Warning;
    /// The package manager failed.
    PackageChangeFailed = "PACKAGE_CHANGE_FAILED", Warning;
    /// Installed modules are not those that are loaded.
    DriverNotInEffect = "DRIVER_NOT_IN_EFFECT", Warning;
    /// The driver container's modules are not loaded.
    DriverContainerNotInEffect = "DRIVER_CONTAINER_NOT_IN_EFFECT", Warning;
    /// The next kernel has no RDMA or GPU modules.
    KernelUpgradeNotReady = "KERNEL_UPGRADE_NOT_READY", Warning;
    /// A build of RDMA or GPU modules failed.
    OfedDkmsBuildFailed = "OFED_DKMS_BUILD_FAILED", Warning;
    /// Modules are built against the OFED of another kernel.
    OfedDefaultLinkStale = "OFED_DEFAULT_LINK_STALE", Warning;
    /// RDMA modules are kept from loading by what a driver container left.
    RdmaModulesBlacklisted = "RDMA_MODULES_BLACKLISTED", Warning;
    /// The device node of RDMA-CM is not there.
    RdmaUcmNotLoaded = "RDMA_UCM_NOT_LOADED", Warning;
    /// The kernel refuses a module's signature.
    ModuleSignatureRejected = "MODULE_SIGNATURE_REJECTED", Error;
    /// nvidia-peermem is loaded, and what is on disk would not load again.
    GpuModulesStale = "GPU_MODULES_STALE_AFTER_OFED_UPGRADE", Error;
    /// nvidia-peermem does not load: it was built against another OFED, or none.
    PeermemBuiltAgainstOther = "PEERMEM_BUILT_AGAINST_OTHER_OFED", Error;
    /// nvidia-peermem is loaded where old NCCL releases do not look.
    PeermemInvisible = "PEERMEM_INVISIBLE_TO_OLD_NCCL", Info;
    /// The RDMA driver offers no peer memory.
    PeerMemoryApiAbsent = "PEER_MEMORY_API_ABSENT", Info;
    /// The kernel has no peer-to-peer DMA.
    KernelWithoutP2pdma = "KERNEL_WITHOUT_P2PDMA", Warning;
    /// A GPU that GPU-direct RDMA is not made for.
    GpuWithoutGpuDirect = "GPU_WITHOUT_GPUDIRECT_RDMA", Error;
    /// What is to be done belongs to gpu-operator.
    GpuOperatorOwnsDriver = "GPU_OPERATOR_OWNS_DRIVER", Info;
    /// There is no way to GPU memory.
    GpuDirectUnavailable = "GPU_DIRECT_UNAVAILABLE", Error;
    /// Whether there is a way to GPU memory is unknown.
    GpuDirectUnknown = "GPU_DIRECT_UNKNOWN", Warning;
    /// A NIC is the node's own, and is not paired.
    ManagementInterface = "MANAGEMENT_INTERFACE", Info;
    /// An address cannot be given: it is elsewhere, or another one is in its subnet.
    AddressConflict = "ADDRESS_CONFLICT", Warning;
    /// There is no interface to give an address to.
    AddressWithoutInterface = "ADDRESS_WITHOUT_INTERFACE", Warning;
    /// Several rails of this node are in one subnet.
    RailsShareSubnet = "RAILS_SHARE_SUBNET", Warning;
    /// The driver does not take an MTU.
    MtuImpossible = "MTU_IMPOSSIBLE", Warning;
    /// Interfaces of one path have different MTUs.
    MtuPathDiffers = "MTU_PATH_DIFFERS", Info;
    /// An Ethernet interface leaves room for small RDMA packets only.
    RoceMtuSmall = "ROCE_ACTIVE_MTU_1024", Warning;
    /// An RDMA device is a bond, whose ports one connection does not fill.
    LagNeedsMultiQp = "LAG_NEEDS_MULTI_QP", Info;
    /// The MTU of an InfiniBand group is smaller than asked.
    IpoibGroupMtu = "IPOIB_GROUP_MTU", Warning;
    /// Enhanced IPoIB has no connected mode.
    IpoibEnhanced = "IPOIB_ENHANCED", Warning;
    /// The subnet manager has not given a port a `P_Key`.
    PkeyNotGranted = "PKEY_NOT_GRANTED", Warning;
    /// A partition's child interface cannot be made.
    PkeyWithoutInterface = "PKEY_WITHOUT_INTERFACE", Warning;
    /// The first `P_Key` of a port reaches nobody, and a later one does.
    DefaultPkeyUnusable = "DEFAULT_PKEY_UNUSABLE", Warning;
    /// The driver cannot set a part of the quality of service.
    QosUnsupported = "QOS_UNSUPPORTED", Warning;
    /// Findings that did not fit into the status; it makes this one itself ([`crds::node`]).
    FindingsOmitted = "FINDINGS_OMITTED", Info;
}

impl FindingId {
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
