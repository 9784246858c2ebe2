//! What is asked of RDMA ports and network interfaces: which NICs it is for, then one file for each kind of setting.
//!
//! NICs of role Compute and Storage are configured, and nothing that the node itself depends on, unless a rule of `nics`
//! names it. A port whose link layer is unknown is left alone. Nothing of this outlives a reboot or a new load of the
//! driver: the next plan sees the difference.

mod addresses;
mod infiniband;
mod mtu;
mod qos;
mod roce;

use std::collections::BTreeMap;

use crds::fabric::{NicMatch, NicRole, NicRule};
use host::facts::network::{Interface, Link, Owner};
use topology::fact::Fact;
use topology::machine::{LinkLayer, Nic, NicRole as Role};

use super::{Plan, World};
use crate::action::{Change, FabricChange, Netdev};
use crate::findings::FindingId;
use crate::protected::protected;
use crate::roles;

pub(crate) use mtu::HEADERS as ROCE_HEADERS;

/// A NIC that is configured.
struct Site<'a> {
    nic: &'a Nic,
    layer: LinkLayer,
    links: &'a BTreeMap<String, Link>,
    /// Its own interfaces in the host's namespace: one, or the ports of a bond that is one RDMA device.
    netdevs: Vec<(Netdev, &'a Link)>,
}

pub(super) fn plan(plan: &mut Plan, world: &World<'_>) {
    if !world.desired.asks_of_network() {
        return;
    }
    let Some(links) = links(plan, world) else {
        return;
    };
    addresses::in_use(plan, world, links);
    if !world.desired.sets_network() {
        return;
    }
    let sites = sites(plan, world, links);
    for site in &sites {
        match site.layer {
            LinkLayer::InfiniBand => infiniband::plan(plan, world, site),
            LinkLayer::Ethernet => {
                mtu::plan(plan, world, site);
                qos::plan(plan, world, site);
                roce::plan(plan, world, site);
            }
        }
    }
    addresses::plan(plan, world, &sites);
}

fn links<'a>(plan: &mut Plan, world: &World<'a>) -> Option<&'a BTreeMap<String, Link>> {
    let why = match &world.state.facts.network.links.fact {
        Fact::Known(links) => return Some(links),
        Fact::Absent => "no interface was found",
        Fact::Unreadable(why) => why,
    };
    let message = format!("nothing of `fabric` is planned: {why}");
    plan.find(FindingId::HostUnreadable, "network", message);
    None
}

fn sites<'a>(
    plan: &mut Plan,
    world: &World<'a>,
    links: &'a BTreeMap<String, Link>,
) -> Vec<Site<'a>> {
    let state = world.state;
    let protected = protected(&state.facts.network, world.machine, &state.node_addresses);
    let mut sites = Vec::new();
    for nic in &world.machine.nics {
        if !matches!(nic.role, Role::Compute | Role::Storage) {
            continue;
        }
        let Some(layer) = layer(plan, nic) else {
            continue;
        };
        let why = protected.why(nic);
        match why.filter(|_| !is_named(&world.desired.config.nics, nic)) {
            Some(why) => is_protected(plan, nic, &why),
            None => sites.push(Site {
                nic,
                layer,
                links,
                netdevs: netdevs(nic, links),
            }),
        }
    }
    sites
}

/// The link layer of all ports.
fn layer(plan: &mut Plan, nic: &Nic) -> Option<LinkLayer> {
    let layers = nic.ports.iter().map(|port| port.link_layer.known());
    let layers: Option<Vec<&LinkLayer>> = layers.collect();
    match layers.as_deref() {
        Some([first, rest @ ..]) if rest.iter().all(|layer| layer == first) => Some(**first),
        _ => {
            let message = "the link layer of its ports is unknown or not one: nothing of `fabric` is set there";
            plan.find(FindingId::HostUnreadable, nic.name(), message);
            None
        }
    }
}

fn is_protected(plan: &mut Plan, nic: &Nic, why: &str) {
    let message = format!(
        "it {why}. Nothing of `fabric` is set there; to have it set all the same, name the NIC by pci, netdev or rdma in `nics` with role Compute or Storage"
    );
    plan.find(FindingId::ProtectedInterface, nic.name(), message);
}

/// Whether the rule that decides names this very NIC.
fn is_named(rules: &[NicRule], nic: &Nic) -> bool {
    let rule = rules.iter().find(|rule| roles::matches(&rule.matches, nic));
    let whole = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.ends_with('*'));
    rule.is_some_and(|rule| {
        let NicMatch {
            pci, netdev, rdma, ..
        } = &rule.matches;
        let used = matches!(rule.role, NicRole::Compute | NicRole::Storage);
        used && [pci, netdev, rdma].into_iter().any(whole)
    })
}

/// Children of an IPoIB interface have the same device, and are not the NIC's own; nor are an embedded switch's ports.
fn netdevs<'a>(nic: &Nic, links: &'a BTreeMap<String, Link>) -> Vec<(Netdev, &'a Link)> {
    let own = nic.netdevs.iter().filter_map(|name| {
        let link = links.get(name)?;
        let netdev = Netdev {
            name: name.clone(),
            index: link.index,
        };
        link.lower.is_none().then_some((netdev, link))
    });
    own.take(if nic.bond { 2 } else { 1 }).collect()
}

/// Settings of an interface.
fn interface<'a>(world: &World<'a>, netdev: &Netdev) -> Option<&'a Interface> {
    world.state.facts.network.interfaces.get(&netdev.name)
}

impl<'a> Site<'a> {
    /// The interface that has the address and decides on the MTU: the bond, where there is one.
    fn carrier(&self) -> Option<(Netdev, &'a Link)> {
        let (netdev, link) = self.netdevs.first()?;
        let bond = link.master.as_ref().and_then(|name| {
            let above = self.links.get(name)?;
            let is_bond = matches!(above.kind.as_deref(), Some("bond" | "team"));
            is_bond.then(|| {
                let netdev = Netdev {
                    name: name.clone(),
                    index: above.index,
                };
                (netdev, above)
            })
        });
        Some(bond.unwrap_or((netdev.clone(), link)))
    }

    /// Who else configures its interfaces.
    fn owners<'b>(&self, world: &World<'b>) -> Vec<&'b Owner> {
        let interfaces = self.netdevs.iter();
        let interfaces = interfaces.filter_map(|(netdev, _)| interface(world, netdev));
        interfaces.flat_map(|interface| &interface.owners).collect()
    }
}

impl Plan {
    /// [`Plan::ensure`] of a change of the fabric, once: NICs may share a bond.
    fn fabric(
        &mut self,
        world: &World<'_>,
        change: FabricChange,
        undo: FabricChange,
        seen: impl Into<String>,
    ) {
        let change = Change::Fabric(change);
        if self.actions.iter().all(|action| action.change != change) {
            self.ensure(world, change, Change::Fabric(undo), seen);
        }
    }

    /// Notes what is as asked already.
    fn as_asked(&mut self, change: FabricChange) {
        self.met.insert(Change::Fabric(change));
    }

    /// Another program sets the same thing to another value.
    fn owned_elsewhere(&mut self, netdev: &str, what: &str, wanted: &str, owner: &Owner) {
        let message = format!(
            "{} of {netdev} is set by {:?} ({}), not to {wanted}: it is left as it is. Change it there, or take it out there or here",
            what, owner.manager, owner.source
        );
        self.find(FindingId::ForeignOwner, netdev, message);
    }
}

#[cfg(test)]
mod tests;
