//! The map from slot to rail, one for each hardware layout. Pure.
//!
//! A node whose slots are all in a known layout, with the same products, is of that layout: a missing NIC is a hole. Any
//! other node makes a new one, which keeps the rails of what the node was given before, or else of the largest known layout
//! that it contains: so a slot has one rail, whether the first node that was seen was complete or not. What a new layout
//! contains is no longer needed, and goes.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster::{RailLayout, RailSlot};
use crds::reasons::NodeReason;
use topology::pci::PciAddress;

use super::{Problem, Rails};
use crate::components::hash;

/// Most layouts that are kept: the CRD's limit. A cluster has a handful of machine models.
pub(super) const MOST_LAYOUTS: usize = 16;
/// The highest rail that the CRD takes.
const LAST_RAIL: u32 = 63;

/// Product of each slot, where known.
pub(super) type Slots = BTreeMap<PciAddress, Option<String>>;

/// One layout.
struct Layout {
    slots: BTreeMap<PciAddress, (String, u32)>,
}

/// All layouts of a cluster.
pub(super) struct Layouts(Vec<Layout>);

impl Layouts {
    pub(super) fn new(known: &[RailLayout]) -> Self {
        let slot = |slot: &RailSlot| {
            let pci = slot.pci.parse().ok()?;
            Some((pci, (slot.product.clone(), slot.rail)))
        };
        let layouts = known.iter().map(|layout| Layout {
            slots: layout.slots.iter().filter_map(slot).collect(),
        });
        Self(layouts.filter(|layout| !layout.slots.is_empty()).collect())
    }

    /// As the status keeps them, in the order of their hashes.
    pub(super) fn into_list(self) -> Vec<RailLayout> {
        let mut list: Vec<_> = self.0.iter().map(Layout::shown).collect();
        list.sort_unstable_by(|a, b| a.hash.cmp(&b.hash));
        list.dedup_by(|a, b| a.hash == b.hash);
        list
    }

    /// Rails of these slots. No problem in the error: nothing can be said yet.
    pub(super) fn rails(&mut self, slots: &Slots, given: &Rails) -> Result<Rails, Option<Problem>> {
        if slots.is_empty() {
            return Ok(Rails::new());
        }
        let fitting: Vec<_> = self.0.iter().filter(|layout| layout.holds(slots)).collect();
        if let Some(exact) = fitting
            .iter()
            .find(|layout| layout.slots.len() == slots.len())
        {
            return Ok(exact.rails(slots));
        }
        let answers: BTreeSet<Rails> = fitting.iter().map(|layout| layout.rails(slots)).collect();
        let agrees = |rails: &&Rails| given.iter().all(|(pci, rail)| rails.get(pci) == Some(rail));
        let agreeing: Vec<_> = answers.iter().filter(agrees).collect();
        match (answers.first(), agreeing.as_slice()) {
            (None, _) => self.learn(slots, given),
            (Some(only), _) if answers.len() == 1 => Ok(only.clone()),
            (_, [one]) => Ok((*one).clone()),
            _ => Err(Some(ambiguous(slots, &fitting))),
        }
    }

    /// Makes a new layout. A product that is unknown may be known at the next report.
    fn learn(&mut self, slots: &Slots, given: &Rails) -> Result<Rails, Option<Problem>> {
        let products: Option<BTreeMap<PciAddress, String>> = slots
            .iter()
            .map(|(pci, product)| Some((*pci, product.clone()?)))
            .collect();
        let products = products.ok_or(None)?;
        let rails = numbered(&products, &self.begun(slots, given));
        let slots = products.into_iter().filter_map(|(pci, product)| {
            let rail = *rails.get(&pci)?;
            Some((pci, (product, rail)))
        });
        let layout = Layout {
            slots: slots.collect(),
        };
        let contained = |old: &Layout| layout.contains(old);
        let kept = self.0.iter().filter(|old| !contained(old)).count();
        if kept >= MOST_LAYOUTS {
            return Err(Some(full()));
        }
        self.0.retain(|old| !contained(old));
        self.0.push(layout);
        Ok(rails)
    }

    /// The rails that a new layout begins with.
    fn begun(&self, slots: &Slots, given: &Rails) -> Rails {
        if !given.is_empty() {
            return given.clone();
        }
        let inside = self.0.iter().filter(|layout| layout.is_within(slots));
        let largest = inside.max_by_key(|layout| (layout.slots.len(), &layout.slots));
        largest.map(Layout::all).unwrap_or_default()
    }
}

impl Layout {
    fn holds(&self, slots: &Slots) -> bool {
        slots.iter().all(|(pci, product)| {
            let slot = self.slots.get(pci);
            slot.is_some_and(|slot| product.as_ref().is_none_or(|product| *product == slot.0))
        })
    }

    fn is_within(&self, slots: &Slots) -> bool {
        self.slots
            .iter()
            .all(|(pci, (product, _))| slots.get(pci).and_then(Option::as_ref) == Some(product))
    }

    /// Whether it has the slots of `other`, with the same products and rails.
    fn contains(&self, other: &Self) -> bool {
        let same = |(pci, slot)| self.slots.get(pci) == Some(slot);
        other.slots.iter().all(same)
    }

    fn all(&self) -> Rails {
        self.slots
            .iter()
            .map(|(pci, slot)| (*pci, slot.1))
            .collect()
    }

    fn rails(&self, slots: &Slots) -> Rails {
        let mut rails = self.all();
        rails.retain(|pci, _| slots.contains_key(pci));
        rails
    }

    fn hash(&self) -> String {
        let slots = self
            .slots
            .iter()
            .map(|(pci, slot)| (pci.to_string(), slot.0.as_str()));
        hash(&slots.collect::<Vec<_>>())
    }

    fn shown(&self) -> RailLayout {
        let slot = |(pci, (product, rail)): (&PciAddress, &(String, u32))| RailSlot {
            pci: pci.to_string(),
            product: product.clone(),
            rail: *rail,
        };
        RailLayout {
            hash: self.hash(),
            slots: self.slots.iter().map(slot).collect(),
        }
    }
}

/// What is begun with stays, once for each rail; the other slots get the lowest free rails in the order of PCI addresses.
fn numbered(products: &BTreeMap<PciAddress, String>, begun: &Rails) -> Rails {
    let mut used = BTreeSet::new();
    let mut rails: Rails = begun
        .iter()
        .filter(|(pci, _)| products.contains_key(*pci))
        .filter(|(_, rail)| used.insert(**rail))
        .map(|(pci, rail)| (*pci, *rail))
        .collect();
    let mut free = (0..=LAST_RAIL).filter(|rail| !used.contains(rail));
    for pci in products.keys() {
        if !rails.contains_key(pci)
            && let Some(rail) = free.next()
        {
            rails.insert(*pci, rail);
        }
    }
    rails
}

fn ambiguous(slots: &Slots, fitting: &[&Layout]) -> Problem {
    let layouts: Vec<_> = fitting.iter().map(|layout| layout.hash()).collect();
    let message = format!(
        "its {} NICs fit the layouts {} of status.railLayouts, which disagree about their rails: bring the missing NICs back, or write fabric.rails for this hardware",
        slots.len(),
        layouts.join(", ")
    );
    Problem {
        reason: NodeReason::RailsAmbiguous,
        message,
    }
}

fn full() -> Problem {
    let message = format!(
        "its NICs fit none of the {MOST_LAYOUTS} layouts of status.railLayouts, and no more are kept: write fabric.rails for all of its NICs, or give this hardware a cluster of its own"
    );
    Problem {
        reason: NodeReason::RailLayoutsFull,
        message,
    }
}
