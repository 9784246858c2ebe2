//! The kubelet's device plugin API v1beta1, generated from `proto/deviceplugin.proto`.
#![allow(missing_docs, unreachable_pub, clippy::pedantic)]

tonic::include_proto!("v1beta1");

/// The only version that a kubelet accepts.
pub const VERSION: &str = "v1beta1";
/// A device that may be handed out.
pub const HEALTHY: &str = "Healthy";
/// A device that counts as capacity and is not handed out.
pub const UNHEALTHY: &str = "Unhealthy";
/// File name of the kubelet's own socket.
pub const KUBELET_SOCKET: &str = "kubelet.sock";
/// A kubelet receives messages up to this size (the default of grpc-go).
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// What this plugin can do; the same in `Register` and in `GetDevicePluginOptions`.
pub const OPTIONS: DevicePluginOptions = DevicePluginOptions {
    pre_start_required: false,
    get_preferred_allocation_available: true,
};
