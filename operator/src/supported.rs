//! Fields whose effect is not built yet. Set, they give `NotYetSupported=True` and `Ready=False`: silence would be a
//! lie. Pure.

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
    let used = NOT_YET.iter().filter(|(_, uses)| uses(spec));
    let mut fields: Vec<_> = used.map(|(field, _)| *field).collect();
    fields.sort_unstable();
    fields
}

#[cfg(test)]
mod tests;
