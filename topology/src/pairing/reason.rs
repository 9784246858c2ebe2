//! Why a GPU has its NICs, or none, in words for the user.

use std::cmp::Ordering;

use crate::distance::{Distance, DistanceSource};
use crate::machine::{Machine, NicRole};
use crate::pairing::Chosen;
use crate::pairing::candidates::{Candidates, EdgeCost};
use crate::paths::Paths;
use crate::policy::{ResourcePolicy, UnknownDistance};

/// How many other NICs a reason names before it only counts them.
const NAMED: usize = 3;

/// Everything that the choice was made from.
pub(super) struct Context<'a> {
    pub(super) machine: &'a Machine,
    pub(super) paths: &'a Paths,
    pub(super) policy: &'a ResourcePolicy,
    pub(super) candidates: &'a Candidates,
    pub(super) chosen: &'a Chosen,
}

impl Context<'_> {
    /// The other GPUs that have this NIC as their first.
    pub(super) fn sharers(&self, gpu: usize, nic: usize) -> Vec<usize> {
        let others = self
            .chosen
            .iter()
            .filter(|(other, nics)| **other != gpu && nics.first() == Some(&nic));
        others.map(|(other, _)| *other).collect()
    }

    fn holder(&self, nic: usize) -> Option<usize> {
        self.chosen
            .iter()
            .find(|(_, nics)| nics.contains(&nic))
            .map(|(gpu, _)| *gpu)
    }

    fn on_one_card(&self, a: usize, b: usize) -> bool {
        self.candidates.cards.get(&a) == self.candidates.cards.get(&b)
    }

    fn nic(&self, index: usize) -> String {
        let nic = self.machine.nics.iter().find(|nic| nic.index == index);
        nic.map_or_else(|| format!("NIC{index}"), crate::machine::Nic::name)
    }

    fn list(&self, nics: &[usize]) -> String {
        let mut names: Vec<String> = nics.iter().take(NAMED).map(|nic| self.nic(*nic)).collect();
        if nics.len() > NAMED {
            names.push(format!("{} more", nics.len() - NAMED));
        }
        join(&names)
    }

    fn place(&self, gpu: usize, nic: usize) -> String {
        let Some(path) = self.paths.gpu_nic(gpu, nic) else {
            return Distance::Unknown.to_string();
        };
        match path.hops {
            Some(hops) => format!("{}, {}", path.distance, hops_text(hops)),
            None => path.distance.to_string(),
        }
    }
}

fn hops_text(hops: u32) -> String {
    if hops == 1 {
        "1 hop".to_owned()
    } else {
        format!("{hops} hops")
    }
}

fn join(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The reason for a pair.
pub(super) fn paired(context: &Context<'_>, gpu: usize, nics: &[usize]) -> String {
    let Some((&first, further)) = nics.split_first() else {
        return String::new();
    };
    let mut parts = vec![choice(context, gpu, first)];
    parts.extend(sharing(context, gpu, first));
    parts.extend(more_nics(context, gpu, further));
    parts.extend(source(context, gpu, first));
    parts.join("; ")
}

fn choice(context: &Context<'_>, gpu: usize, nic: usize) -> String {
    let (name, place) = (context.nic(nic), context.place(gpu, nic));
    let Some(own) = context.candidates.cost(gpu, nic) else {
        return name;
    };
    if context.paths.distance(gpu, nic) == Distance::Unknown {
        return format!(
            "{name} by index order: no distance is known, and unknownDistance is ByOrder"
        );
    }
    // NICs that the pair has too are named as its further ones.
    let own_nics = context.chosen.get(&gpu).map_or(&[][..], Vec::as_slice);
    let not_own = |other: &usize| !own_nics.contains(other);
    let others: Vec<usize> = context.candidates.nics_of(gpu).filter(not_own).collect();
    let here = (own.distance, own.hops);
    let ranked = |wanted: Ordering| -> Vec<usize> {
        let rank = |other: &usize| {
            context
                .candidates
                .cost(gpu, *other)
                .map(|cost| (cost.distance, cost.hops))
        };
        let fits = |other: &&usize| rank(other).is_some_and(|rank| rank.cmp(&here) == wanted);
        others.iter().filter(fits).copied().collect()
    };
    if let Some(&closer) = ranked(Ordering::Less).first() {
        return farther(context, gpu, nic, closer);
    }
    let ties = ranked(Ordering::Equal);
    if !ties.is_empty() {
        return tied(context, gpu, nic, &ties);
    }
    let closest = format!("{name} is the closest: {place}");
    match same_class(context, gpu, own, &ranked(Ordering::Greater)) {
        Some((other, hops)) => {
            format!(
                "{closest}; {} ties by class but is {} away",
                context.nic(other),
                hops_text(hops)
            )
        }
        None => closest,
    }
}

/// A NIC of the same class behind more hops.
fn same_class(
    context: &Context<'_>,
    gpu: usize,
    own: &EdgeCost,
    others: &[usize],
) -> Option<(usize, u32)> {
    let class = |other: &usize| {
        context
            .candidates
            .cost(gpu, *other)
            .map(|cost| cost.distance)
    };
    let other = others
        .iter()
        .find(|other| class(other) == Some(own.distance))?;
    Some((*other, context.paths.gpu_nic(gpu, *other)?.hops?))
}

fn farther(context: &Context<'_>, gpu: usize, nic: usize, closest: usize) -> String {
    let holder = context
        .holder(closest)
        .map_or_else(|| "no GPU".to_owned(), |other| format!("GPU{other}"));
    let (name, place) = (context.nic(nic), context.place(gpu, nic));
    let (closer, closer_place) = (context.nic(closest), context.place(gpu, closest));
    format!(
        "{name}: {place}; {closer} is closer ({closer_place}) and goes to {holder}, which makes the whole better"
    )
}

/// What decided between NICs that are equally close: other GPUs have some of them, the rest were there to choose from.
fn tied(context: &Context<'_>, gpu: usize, nic: usize, ties: &[usize]) -> String {
    let (name, place) = (context.nic(nic), context.place(gpu, nic));
    let closest = format!("{name} is the closest: {place}");
    let are = |nics: &[usize]| if nics.len() == 1 { "is" } else { "are" };
    let is_held = |other: &usize| context.holder(*other).is_some();
    let (held, free): (Vec<usize>, Vec<usize>) = ties.iter().partition(|other| is_held(other));
    let slower = ties
        .iter()
        .all(|other| has_a_better_link(context, gpu, nic, *other));
    if held.is_empty() || slower {
        let decision = decision(context, gpu, nic, ties);
        let list = context.list(ties);
        return format!("{closest}; {list} {} equally close{decision}", are(ties));
    }
    let holders = match held[..] {
        [one] => {
            let holder = context.holder(one).unwrap_or_default();
            format!("goes to GPU{holder}")
        }
        _ => "go to other GPUs".to_owned(),
    };
    let (list, verb) = (context.list(&held), are(&held));
    let taken = format!("{closest}; {list} {verb} equally close and {holders}");
    if free.is_empty() {
        return taken;
    }
    let (list, verb) = (context.list(&free), are(&free));
    format!(
        "{taken}; so {verb} {list}{}",
        decision(context, gpu, nic, &free)
    )
}

/// Why this NIC and none of those that were as close and free.
fn decision(context: &Context<'_>, gpu: usize, nic: usize, others: &[usize]) -> &'static str {
    if others
        .iter()
        .all(|other| has_a_better_link(context, gpu, nic, *other))
    {
        ", with a slower or unlike link"
    } else if others.iter().all(|other| context.on_one_card(nic, *other)) {
        ", on the same card: index order decides"
    } else {
        ": cards, load and then index order decide"
    }
}

fn has_a_better_link(context: &Context<'_>, gpu: usize, nic: usize, other: usize) -> bool {
    let link = |nic| {
        let cost = context.candidates.cost(gpu, nic);
        cost.map(|cost: &EdgeCost| (cost.layer, cost.slowness))
    };
    link(nic) < link(other)
}

fn sharing(context: &Context<'_>, gpu: usize, nic: usize) -> Option<String> {
    let sharers: Vec<String> = context
        .sharers(gpu, nic)
        .iter()
        .map(|other| format!("GPU{other}"))
        .collect();
    if sharers.is_empty() {
        return None;
    }
    let limit = context.policy.max_distance;
    Some(format!(
        "shared with {}: GPUs outnumber the NICs within {limit}",
        join(&sharers)
    ))
}

fn more_nics(context: &Context<'_>, gpu: usize, further: &[usize]) -> Option<String> {
    let wanted = context.policy.nics_per_gpu;
    if wanted <= 1 {
        return None;
    }
    let have = further.len() + 1;
    let mut texts: Vec<String> = further
        .iter()
        .map(|nic| {
            format!(
                "further {} ({})",
                context.nic(*nic),
                context.place(gpu, *nic)
            )
        })
        .collect();
    if u32::try_from(have).is_ok_and(|have| have < wanted) {
        texts.push(format!(
            "{have} of {wanted} NICs: no other within {} is free",
            context.policy.max_distance
        ));
    }
    Some(texts.join("; "))
}

fn source(context: &Context<'_>, gpu: usize, nic: usize) -> Option<String> {
    match &context.paths.gpu_nic(gpu, nic)?.source {
        DistanceSource::Sysfs => None,
        DistanceSource::TopologyFile(path) => Some(format!("by the topology file {path}")),
        DistanceSource::Matrix => Some("by a printed matrix".to_owned()),
    }
}

/// The reason for no pair.
pub(super) fn unpaired(context: &Context<'_>, gpu: usize) -> String {
    let compute: Vec<usize> = context
        .machine
        .nics
        .iter()
        .filter(|nic| nic.role == NicRole::Compute)
        .map(|nic| nic.index)
        .collect();
    if compute.is_empty() {
        return "the machine has no RDMA device of role Compute".to_owned();
    }
    if let Some(nic) = context.candidates.nics_of(gpu).next() {
        let holder = context
            .holder(nic)
            .map_or_else(String::new, |other| format!(" goes to GPU{other} and"));
        return format!(
            "{} ({}){holder} nicSharing is Never",
            context.nic(nic),
            context.place(gpu, nic)
        );
    }
    let closest = compute
        .iter()
        .min_by_key(|nic| (context.paths.distance(gpu, **nic), **nic));
    closest.map_or_else(String::new, |nic| out_of_reach(context, gpu, *nic))
}

fn out_of_reach(context: &Context<'_>, gpu: usize, nic: usize) -> String {
    let distance = context.paths.distance(gpu, nic);
    if distance == Distance::Unknown {
        return "the distance to every NIC is unknown: /sys shows no common PCI ancestor and no NUMA node; \
                name a topology file, or set unknownDistance: ByOrder"
            .to_owned();
    }
    if distance <= context.policy.max_distance
        && context.policy.unknown_distance == UnknownDistance::Refuse
    {
        return format!(
            "only a topology file tells the distance to {}, and unknownDistance is Refuse",
            context.nic(nic)
        );
    }
    let limit = context.policy.max_distance;
    format!(
        "the closest NIC, {}, is {distance}; maxDistance is {limit}",
        context.nic(nic)
    )
}
