//! Fields whose effect is not built yet. Set, they give `NotYetSupported=True` and `Ready=False`: silence would be a
//! lie. Pure; [`crds::not_yet_supported`] knows the agent's fields, this table the operator's.

use crds::GpuRdmaClusterSpec;
use crds::cluster::Precompiled;

type Row = (&'static str, fn(&GpuRdmaClusterSpec) -> bool);

const NOT_YET: &[Row] = &[("driver.container.precompiled=Require", |spec| {
    spec.driver
        .container
        .as_ref()
        .is_some_and(|container| container.precompiled == Precompiled::Require)
})];

/// The fields in use whose effect is not built yet, in the order of their names.
#[must_use]
pub fn not_yet(spec: &GpuRdmaClusterSpec) -> Vec<&'static str> {
    let ours = NOT_YET
        .iter()
        .filter(|(_, uses)| uses(spec))
        .map(|(field, _)| *field);
    let mut fields: Vec<_> = ours.chain(crds::not_yet_supported(spec)).collect();
    fields.sort_unstable();
    fields.dedup();
    fields
}

#[cfg(test)]
mod tests;
