//! Answers `GetPreferredAllocation`. Pure; [`crate::service`] calls it.
//!
//! An error would make the kubelet reject the pod, so whatever does not fit is answered by an empty list, and the
//! kubelet chooses for itself.

use std::collections::BTreeSet;

use crate::proto::{
    ContainerPreferredAllocationRequest as Request,
    ContainerPreferredAllocationResponse as Response, PreferredAllocationRequest,
    PreferredAllocationResponse,
};
use crate::resource::Resource;

/// One answer per container, in the order of the request.
#[must_use]
pub fn prefer(
    resource: Option<&Resource>,
    request: &PreferredAllocationRequest,
) -> PreferredAllocationResponse {
    let answer = |r: &Request| Response {
        device_ids: resource
            .and_then(|known| choose(known, r))
            .unwrap_or_default(),
    };
    PreferredAllocationResponse {
        container_responses: request.container_requests.iter().map(answer).collect(),
    }
}

/// Exactly as many ids as asked for, among the available ones and with those that must be there; else none.
fn choose(resource: &Resource, request: &Request) -> Option<Vec<String>> {
    let size = usize::try_from(request.allocation_size).ok()?;
    let available = distinct(&request.available_device_ids)?;
    let must = distinct(&request.must_include_device_ids)?;
    let known = available
        .iter()
        .all(|id| resource.plan().device(id).is_some());
    if !known || !must.is_subset(&available) || !(must.len()..=available.len()).contains(&size) {
        return None;
    }
    let sorted = |ids: &BTreeSet<&str>| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let chosen = resource
        .plan()
        .preference()
        .choose(&sorted(&available), &sorted(&must), size);
    let set = distinct(&chosen)?;
    (set.len() == size && set.is_subset(&available) && must.is_subset(&set)).then_some(sorted(&set))
}

fn distinct(ids: &[String]) -> Option<BTreeSet<&str>> {
    let set: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    (set.len() == ids.len()).then_some(set)
}

#[cfg(test)]
mod tests;
