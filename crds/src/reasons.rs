//! Condition types, condition reasons and event reasons of both kinds. Pure: names only. Operator and agent spell
//! them from here, so that alerts, docs and tests can rely on them.

use std::fmt;

/// An enum whose values are `CamelCase` names in the Kubernetes API: the variant's own name.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name as it stands in the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }
    };
}

names! {
    /// Types of the conditions of a `GpuRdmaCluster`.
    ClusterCondition {
        /// Every node reached what the cluster asks for.
        Ready,
        /// Some node is on its way.
        Progressing,
        /// Some node needs a person.
        Degraded,
        /// Another cluster selects some of the same nodes.
        Conflict,
        /// Fields are set whose effect is not built yet.
        NotYetSupported,
        /// New actions are stopped.
        Paused,
    }
}

names! {
    /// Reasons of the conditions of a `GpuRdmaCluster`.
    ClusterReason {
        /// Ready: every node reached what the cluster asks for.
        NodesReady,
        /// No node matches the selector: a valid state.
        NoMatchingNodes,
        /// Nodes match, but none has both a GPU and an RDMA device.
        NoApplicableNodes,
        /// Mode Observe: nothing is changed and nothing advertised.
        ObserveOnly,
        /// Mode Plan: plans are published and none is run.
        PlanOnly,
        /// Some nodes are not ready; the status names them.
        NodesNotReady,
        /// Some nodes need a person; the status names them.
        NodesDegraded,
        /// Some nodes have not reported yet.
        AgentPending,
        /// Some nodes are on their way.
        Progressing,
        /// Nothing is on its way.
        Settled,
        /// A node is under maintenance by our grant.
        MaintenanceInProgress,
        /// Plans wait for a maintenance slot: as many nodes as `maxUnavailable` allows are unavailable.
        NoMaintenanceSlot,
        /// Granted maintenance waits for pods to end.
        WaitingForWorkloads,
        /// Maintenance failed on a node; no other node gets a grant until a person has looked.
        MaintenanceHalted,
        /// Another cluster selects some of the same nodes.
        Conflict,
        /// No other cluster selects the same nodes.
        NoConflict,
        /// `paused` is set.
        Paused,
        /// `paused` is not set.
        NotPaused,
        /// Fields are set whose effect is not built yet; the message names them.
        NotYetSupported,
        /// Every set field has its effect.
        AllSupported,
        /// The node selector cannot be evaluated.
        InvalidSelector,
        /// Fields of the specification contradict each other.
        InvalidSpec,
        /// Many nodes lost the selector's labels at once; they are kept until the selector changes or the labels return.
        NodesHeld,
        /// The API server's CRD is older than the operator and prunes its fields.
        OutdatedCrd,
        /// A DaemonSet could not be applied.
        ApplyFailed,
        /// A driver image's registry refused the pull secret.
        RegistryUnauthorized,
        /// A driver image's registry has a certificate that is not trusted.
        RegistryTls,
        /// A driver image's registry has no address.
        RegistryDns,
        /// A driver image does not exist for a node's kernel.
        ImageNotFound,
        /// The cluster is being deleted.
        Deleting,
    }
}

names! {
    /// Types of the conditions of a `GpuRdmaNode`.
    NodeCondition {
        /// The node is as the cluster asks.
        Ready,
        /// The RDMA driver is as the cluster asks.
        DriverReady,
        /// GPU memory is reachable for the NIC.
        GpuDirectReady,
        /// Links, MTU and classes are as the cluster asks.
        FabricReady,
        /// The device plugin advertises the pairs.
        Advertised,
    }
}

names! {
    /// Reasons of the conditions of a `GpuRdmaNode`.
    NodeReason {
        /// The node is as the cluster asks.
        AsSpecified,
        /// Nothing is asked: what is there is kept.
        Kept,
        /// The agent has not reported yet.
        AgentPending,
        /// The agent has stopped reporting; what it last said stands.
        AgentLost,
        /// The node has no GPU or no RDMA device.
        NotApplicable,
        /// Mode Observe: nothing is changed and nothing advertised.
        Observed,
        /// Mode Plan: the plan is published and not run.
        Planned,
        /// `paused` is set on the cluster.
        Paused,
        /// Free actions run.
        Progressing,
        /// The plan costs traffic or a reboot and waits for the operator's grant.
        WaitingForGrant,
        /// Granted maintenance waits for pods to end.
        WaitingForWorkloads,
        /// A kernel user, such as Lustre or NFS over RDMA, holds the RDMA stack.
        KernelUserPresent,
        /// A module is held by another; the message names the holder.
        ModuleInUse,
        /// Granted maintenance runs.
        MaintenanceInProgress,
        /// Maintenance failed on this node; the message says how.
        MaintenanceFailed,
        /// Maintenance failed on another node of the cluster; this one waits until a person has looked.
        MaintenanceHalted,
        /// The node gave its maintenance slot back and is tried again later.
        MaintenancePostponed,
        /// The grant was for another install hash.
        GrantRevoked,
        /// An action failed as often as its budget allows.
        AttemptsExhausted,
        /// An action failed and will be tried again.
        ActionFailed,
        /// No RDMA driver is loaded.
        DriverNotLoaded,
        /// The running driver is not the one that is asked for.
        DriverMismatch,
        /// GPU modules were built against another RDMA driver.
        ModulesStale,
        /// GPU memory is not reachable for the NIC.
        GpuDirectUnavailable,
        /// Another device plugin advertises the same GPUs.
        ForeignGpuAdvertiser,
        /// The other device plugin is switched off; its devices go and ours come.
        TakingOver,
        /// The node's GPUs are taken over later; the message says what that waits for.
        TakeoverWaits,
        /// The node's GPUs go back to the other device plugin; the message says what that waits for.
        GivingBack,
        /// GPUs cannot be put into containers: no CDI specification for them.
        GpuInjectionUnavailable,
        /// GPUs are split by MIG or time slicing.
        GpuPartitioned,
        /// The device plugin has not registered with the kubelet.
        PluginNotRegistered,
        /// No pair may be handed out; the pairs say why.
        NoAdmittedPairs,
        /// Some pairs may not be handed out; the pairs say why.
        PairsRefused,
        /// A port is down.
        LinkDown,
        /// A port runs another link layer than the one that is asked for.
        LinkLayerMismatch,
        /// A setting of the fabric differs from what is asked.
        FabricMismatch,
        /// Someone else's settings differ from ours.
        ForeignOwner,
        /// The change would touch an interface that the node itself depends on.
        ProtectedInterface,
        /// Errors were found; the findings say which.
        ErrorsFound,
        /// The platform does not allow what is asked.
        UnsupportedPlatform,
        /// Part of the host could not be read.
        HostUnreadable,
        /// The NICs fit several known hardware layouts, which disagree about their rails.
        RailsAmbiguous,
        /// Two NICs of the node are on one rail.
        RailShared,
        /// No more hardware layouts can be kept.
        RailLayoutsFull,
        /// A rail's address range has no address left for the node.
        AddressesExhausted,
    }
}

names! {
    /// Reasons of events on either kind.
    EventReason {
        /// A node was assigned to the cluster.
        NodeAssigned,
        /// A node left the cluster.
        NodeReleased,
        /// A node became ready.
        NodeReady,
        /// A node stopped being ready.
        NodeNotReady,
        /// Another cluster selects some of the same nodes.
        ConflictDetected,
        /// No other cluster selects the same nodes any more.
        ConflictResolved,
        /// Fields are set whose effect is not built yet.
        NotYetSupported,
        /// The operator granted a plan.
        MaintenanceGranted,
        /// The operator took a grant back.
        MaintenanceRevoked,
        /// Granted maintenance ended as planned.
        MaintenanceCompleted,
        /// Granted maintenance failed.
        MaintenanceFailed,
        /// Maintenance waits for a user of the RDMA stack; the message names it.
        MaintenanceBlocked,
        /// A node gave its maintenance slot back and is tried again later.
        MaintenancePostponed,
        /// A pod was evicted for maintenance.
        PodEvicted,
        /// A disruption budget refused an eviction.
        EvictionRefused,
        /// A driver pod was deleted so that its new version starts.
        DriverPodRestarted,
        /// A pod has a RoCE pair but no usable GID.
        PodWithoutGid,
        /// Many nodes lost the same thing at once.
        FabricEvent,
        /// The API server refused an object of ours.
        ApplyFailed,
    }
}

#[cfg(test)]
mod tests;
