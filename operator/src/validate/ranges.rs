//! The address ranges of the rails. Pure. The CRD's rules say the same; an object that was stored before them may not keep
//! to it.

use std::collections::BTreeMap;

use crds::fabric::RailAddresses;
use ipnet::IpNet;

use super::Invalid;

pub(super) fn ranges(addresses: &[RailAddresses]) -> Result<BTreeMap<u32, IpNet>, Invalid> {
    let mut ranges = BTreeMap::new();
    for RailAddresses { rail, cidr } in addresses {
        let range = unicast(cidr).ok_or_else(|| Invalid::Range {
            rail: *rail,
            cidr: cidr.clone(),
        })?;
        let meets = |other: &IpNet| range.contains(other) || other.contains(&range);
        if let Some((other_rail, other)) = ranges.iter().find(|(_, other)| meets(other)) {
            return Err(Invalid::Overlap {
                one: range,
                rail: *rail,
                other: *other,
                other_rail: *other_rail,
            });
        }
        ranges.insert(*rail, range);
    }
    Ok(ranges)
}

/// A range of addresses that hosts can have.
fn unicast(cidr: &str) -> Option<IpNet> {
    let range = cidr.parse::<IpNet>().ok()?.trunc();
    let (first, last) = (range.network(), range.broadcast());
    let special = |address: std::net::IpAddr| address.is_loopback() || address.is_multicast();
    let whole = range.prefix_len() == 0;
    (!whole && !special(first) && !special(last) && !first.is_unspecified()).then_some(range)
}
