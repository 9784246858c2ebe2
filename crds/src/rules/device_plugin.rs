//! Rules of `devicePlugin` and `upgrade`.

use schemars::Schema;

use super::Message::Text;
use super::{Rule, attach};

pub(crate) fn resources(schema: &mut Schema) {
    attach(schema, RESOURCES);
}

const RESOURCES: &[Rule] = &[
    (
        "self.all(one, self.exists_one(other, other.name == one.name))",
        Text("devicePlugin.resources has a name twice: give each entry its own name"),
    ),
    (
        "self.filter(one, one.kind == 'Pair').size() <= 1",
        Text(
            "devicePlugin.resources has more than one entry of kind Pair: keep one, each GPU belongs to exactly one resource",
        ),
    ),
    (
        "self.filter(one, one.kind == 'Gpu').size() <= 1",
        Text(
            "devicePlugin.resources has more than one entry of kind Gpu: keep one, each GPU belongs to exactly one resource",
        ),
    ),
];

pub(crate) fn resource(schema: &mut Schema) {
    attach(schema, RESOURCE);
}

/// Names follow Kubernetes' own rule for extended resources (`IsExtendedResourceName`).
const RESOURCE: &[Rule] = &[
    (
        "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",
        Text(
            "devicePlugin.resources[].name is no extended resource: write domain/name with at most 63 characters after the slash, such as rdma/gpudirect",
        ),
    ),
    (
        "!self.name.contains('kubernetes.io/') && !self.name.startsWith('requests.')",
        Text(
            "devicePlugin.resources[].name is reserved by Kubernetes: write a domain other than kubernetes.io that does not start with requests., such as rdma/gpudirect",
        ),
    ),
    (
        "self.name != 'nvidia.com/gpu' || self.kind != 'SharedNic'",
        Text(
            "devicePlugin.resources[].name nvidia.com/gpu stands for GPUs: write kind: Pair or kind: Gpu, or another name for a SharedNic",
        ),
    ),
    (
        "self.nicsPerGpu >= 1 && self.nicsPerGpu <= 16",
        Text("devicePlugin.resources[].nicsPerGpu is out of range: write 1 to 16"),
    ),
    (
        "self.kind == 'Pair' || self.nicsPerGpu == 1",
        Text(
            "devicePlugin.resources[].nicsPerGpu is for kind Pair only: remove it, or write kind: Pair",
        ),
    ),
    (
        "self.replicas >= 1 && self.replicas <= 1000",
        Text("devicePlugin.resources[].replicas is out of range: write 1 to 1000"),
    ),
    (
        "self.kind == 'SharedNic' || self.replicas == 1",
        Text(
            "devicePlugin.resources[].replicas is for kind SharedNic only: remove it, or write kind: SharedNic",
        ),
    ),
];

pub(crate) fn upgrade(schema: &mut Schema) {
    attach(schema, UPGRADE);
}

/// `type()` is not to be had in every CEL library; only a text equals itself as a text.
const UPGRADE: &[Rule] = &[
    (
        "self.maxUnavailable == string(self.maxUnavailable) ? string(self.maxUnavailable).matches('^([1-9][0-9]?|100)%$') : self.maxUnavailable >= 1 && self.maxUnavailable <= 2147483647",
        Text(
            "upgrade.maxUnavailable is neither a number of nodes nor a percentage: write 1 to 2147483647, or 1% to 100%",
        ),
    ),
    (
        "!has(self.waitTimeout) || self.waitTimeout.matches('^([0-9]+h)?([0-9]+m)?([0-9]+s)?$')",
        Text(
            "upgrade.waitTimeout is no duration: write hours, minutes and seconds, such as 90s, 30m or 1h30m; omit it to wait for ever",
        ),
    ),
];
