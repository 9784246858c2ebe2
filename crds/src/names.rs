//! Names that more than one program must spell alike.

/// API group.
pub const GROUP: &str = "gpurdma.dev";
/// Field manager of the operator's assignment: the whole of `GpuRdmaNode.spec` but `maintenance`.
pub const ASSIGN_MANAGER: &str = "gpurdma-assign";
/// Field manager of the operator's grants: `GpuRdmaNode.spec.maintenance`.
pub const ROLLOUT_MANAGER: &str = "gpurdma-rollout";
/// Field manager of the agent: the whole of `GpuRdmaNode.status`.
pub const AGENT_MANAGER: &str = "gpurdma-agent";
/// Node label that the plugin's DaemonSet selects; an output of the operator, never read as truth.
pub const PLUGIN_LABEL: &str = "gpurdma.dev/plugin";
/// Node label that a driver DaemonSet selects; comes with the grant.
pub const DRIVER_LABEL: &str = "gpurdma.dev/driver";
/// Taint that keeps new pods off a node under maintenance.
pub const MAINTENANCE_TAINT: &str = "gpurdma.dev/maintenance";
/// Annotation on a `GpuRdmaNode` that resets its attempt budgets.
pub const RESET_ATTEMPTS: &str = "gpurdma.dev/reset-attempts";
/// Annotation on a pod that maintenance must not evict: `true`.
pub const DO_NOT_DISRUPT: &str = "gpurdma.dev/do-not-disrupt";
/// Annotation on a `GpuRdmaNode` in which the operator keeps how far its rollout is there.
pub const ROLLOUT_STATE: &str = "gpurdma.dev/rollout-state";
/// Node label by which NVIDIA's gpu-operator deploys its device plugin; a value that is there it honours
/// (`addGPUStateLabels` in its `controllers/state_manager.go`).
pub const GPU_PLUGIN_LABEL: &str = "nvidia.com/gpu.deploy.device-plugin";
/// Annotation on a Node: the value that [`GPU_PLUGIN_LABEL`] had before the operator switched that plugin off.
pub const GPU_PLUGIN_WAS: &str = "gpurdma.dev/gpu-plugin-was";
/// Finalizer of the operator on a `GpuRdmaCluster`.
pub const FINALIZER: &str = "gpurdma.dev/operator";
