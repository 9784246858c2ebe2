//! `driver.source: HostPackages`: repositories, then packages, then the driver that they bring. What does not fit the node
//! is refused before anything is touched.

use host::facts::install::packages::Manager;
use topology::fact::Fact;

use super::super::{Plan, World, under_way};
use super::{activate, node, tell};
use crate::action::{Blocked, Change, DriverChange, Explain};
use crate::compat::{check, wanted};
use crate::desired::WantedPackages;
use crate::findings::FindingId;
use crate::job::Seen;
use crate::packages::repository::Repository;
use crate::packages::{Installed, Wish, Wishes, unmet};

const COMPONENT: &str = "driver.hostPackages";

pub(super) fn plan(plan: &mut Plan, world: &World<'_>) {
    let Some(asked) = &world.desired.packages else {
        return;
    };
    let Some((manager, installed)) = host(plan, world) else {
        return;
    };
    let missing = unmet(&asked.wishes, installed);
    if !fits(plan, world, asked, missing.is_some()) || !free(plan, asked, installed) {
        return;
    }
    if !usable(plan, manager, asked) {
        return;
    }
    for repository in &asked.repositories {
        describe(plan, world, manager, repository);
    }
    let change = Change::Driver(DriverChange::SetPackages {
        manager,
        wishes: asked.wishes.clone(),
    });
    let job = world.state.job.as_ref().filter(|seen| seen.is_of(&change));
    match (missing, job) {
        (Some(missing), _) => set(
            plan,
            world,
            change,
            undo(manager, asked, installed),
            &missing,
        ),
        (None, Some(_)) => {
            let done = "the packages are there; what came with them is not noted yet";
            set(plan, world, change, undo(manager, asked, installed), done);
        }
        (None, None) => {
            plan.met.insert(change);
            activate::plan(plan, world);
        }
    }
}

/// The package manager and what it has; says why where that is not to be had.
fn host<'a>(plan: &mut Plan, world: &World<'a>) -> Option<(Manager, &'a Installed)> {
    let packages = &world.state.facts.install.packages;
    if let Fact::Known(why) = &packages.immutable.fact {
        let message = format!(
            "{why} ({}): packages cannot be installed here. Use driver.source Container or Existing",
            packages.immutable.source
        );
        plan.find(FindingId::UnsupportedPlatform, COMPONENT, message);
        return None;
    }
    let manager = match &packages.manager.fact {
        Fact::Known(manager) => *manager,
        Fact::Absent => {
            let message = "the host has neither apt-get, dnf nor zypper: use driver.source Container or Existing";
            plan.find(FindingId::UnsupportedPlatform, COMPONENT, message);
            return None;
        }
        Fact::Unreadable(why) => {
            plan.find(FindingId::HostUnreadable, COMPONENT, why);
            return None;
        }
    };
    match &packages.installed.fact {
        Fact::Known(installed) => Some((manager, installed)),
        Fact::Absent | Fact::Unreadable(_) => {
            let why = match &packages.installed.fact {
                Fact::Unreadable(why) => why.clone(),
                _ => "it is not there".to_owned(),
            };
            let message = format!(
                "what is installed is unknown ({}: {why}), so nothing is changed",
                packages.installed.source
            );
            plan.find(FindingId::HostUnreadable, COMPONENT, message);
            None
        }
    }
}

/// The upgrade guard. What is there already is not refused any more; doubts are told all the same.
fn fits(plan: &mut Plan, world: &World<'_>, asked: &WantedPackages, changes: bool) -> bool {
    let node = node(world);
    let mut refused = false;
    for (name, wish) in &asked.wishes {
        let Wish::Version(version) = wish else {
            continue;
        };
        if let Some(wanted) = wanted(name.as_str(), version.as_str()) {
            let verdicts = check(&world.state.compat, &node, &wanted);
            refused |= tell(plan, name.as_str(), &verdicts);
        }
    }
    !(refused && changes)
}

/// Holds and pins are the administrator's.
fn free(plan: &mut Plan, asked: &WantedPackages, installed: &Installed) -> bool {
    let mut free = true;
    for (name, wish) in &asked.wishes {
        let Some(found) = installed.get(name.as_str()).filter(|found| found.held) else {
            continue;
        };
        let as_wished = matches!(wish, Wish::Version(version) if version.matches(&found.version));
        if !as_wished {
            free = false;
            let message = format!(
                "{name} is held at {}: the hold is obeyed and nothing is changed. Release it with `apt-mark unhold {name}`, or ask for that version",
                found.version
            );
            plan.find(FindingId::PackageHeld, name.as_str(), message);
        }
    }
    free
}

fn repository_change(manager: Manager, repository: &Repository, there: bool) -> Change {
    Change::Driver(DriverChange::SetRepository {
        manager,
        repository: repository.clone(),
        there,
    })
}

/// Without its repository a package would come from elsewhere, or not at all.
fn usable(plan: &mut Plan, manager: Manager, asked: &WantedPackages) -> bool {
    let wrong = |repository: &Repository| repository.usable(manager).err();
    let error = asked.repositories.iter().find_map(wrong);
    if let Some(error) = &error {
        let field = "driver.hostPackages.repositories";
        plan.find(FindingId::InvalidSpec, field, error.to_string());
    }
    error.is_none()
}

fn describe(plan: &mut Plan, world: &World<'_>, manager: Manager, repository: &Repository) {
    let files = repository.files(manager);
    let missing = match &world.state.facts.install.packages.descriptions {
        Fact::Known(there) => files.iter().find(|file| !there.contains(&file.path)),
        // Whoever read it has said so; a file that is there is written with the same text.
        Fact::Absent | Fact::Unreadable(_) => files.first(),
    };
    let change = repository_change(manager, repository, true);
    let Some(missing) = missing else {
        plan.met.insert(change);
        return;
    };
    let seen = format!("{} is not there", missing.path);
    let undo = repository_change(manager, repository, false);
    plan.ensure(world, change, undo, seen);
}

/// Repositories that we described and nobody asks for any more.
pub(super) fn forget_repositories(plan: &mut Plan, world: &World<'_>) {
    let wanted = world.desired.packages.as_ref();
    let asked = |repository: &Repository| {
        wanted.is_some_and(|wanted| wanted.repositories.contains(repository))
    };
    for entry in world.memory.journal.changed.values() {
        let Change::Driver(DriverChange::SetRepository {
            repository,
            there: true,
            ..
        }) = &entry.done
        else {
            continue;
        };
        if !asked(repository) {
            let seen = format!(
                "{} was described by this agent and is not asked for any more",
                repository.url
            );
            let back = entry.undo.clone();
            let undo = Some(back.clone());
            plan.act(back, seen, world.memory, world.now).undo = undo;
        }
    }
}

/// Removes what was not there before. What was there in another version stays as it will be.
fn undo(manager: Manager, asked: &WantedPackages, installed: &Installed) -> Change {
    let absent = asked
        .wishes
        .keys()
        .filter(|name| !installed.contains_key(name.as_str()));
    let wishes: Wishes = absent.map(|name| (name.clone(), Wish::Absent)).collect();
    Change::Driver(DriverChange::SetPackages { manager, wishes })
}

fn set(plan: &mut Plan, world: &World<'_>, change: Change, undo: Change, missing: &str) {
    let planned = plan.actions.len();
    let (memory, seen) = (world.memory, missing.to_owned());
    let started = |seen: &Seen| seen.is_of(&change);
    if under_way(world.state, memory, &change).is_some() {
        plan.follow(change, seen, memory, None).undo = Some(undo);
    } else if world.state.job.as_ref().is_some_and(started) {
        // What was started was noted before it began, and nobody took it back.
        plan.act(change, seen, memory, world.now).undo = Some(undo);
    } else {
        plan.ensure(world, change, undo, seen);
    }
    let waits = waits(world);
    let Some(action) = plan.actions.get_mut(planned) else {
        return;
    };
    if let Some(waits) = waits {
        // While it runs, nothing has failed.
        action.last_error = None;
        action.blocked = Some(Blocked::Waits(waits));
    }
    let failed = action
        .last_error
        .clone()
        .map(|error| (action.change.desired(), error));
    if let Some((packages, error)) = failed {
        plan.find(FindingId::PackageChangeFailed, packages, error);
    }
}

/// A run of ours, or anybody else's lock.
fn waits(world: &World<'_>) -> Option<String> {
    if let Some(seen) = world.state.job.as_ref().filter(|seen| seen.runs) {
        return Some(format!("the package manager runs since {}", seen.job.at.0));
    }
    let locks = world.state.facts.install.packages.locks.known()?;
    let (path, pid) = locks.first_key_value()?;
    Some(format!("process {pid} holds {path}"))
}
