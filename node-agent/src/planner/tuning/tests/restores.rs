//! The way back of what needs a reboot: judged after it, as the way there is.

use host::facts::tuning::namespaces::ModuleOption;

use super::*;
use crate::action::{Action, Blocked, LinkType};
use crate::planner::restore;

/// What was done, what takes it back, and that the host has rebooted for the latter.
fn rebooted(done: TuningChange, undo: TuningChange) -> Scene {
    let (done, undo) = (Change::Tuning(done), Change::Tuning(undo));
    Scene::asks(|_| {}).with(|scene| {
        let at = "2026-03-01T11:00:00Z".parse().unwrap();
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at);
        let Memory {
            journal, attempts, ..
        } = &mut scene.memory;
        journal.changing(&done, &undo, "boot-0", time);
        attempts.begin(&undo, at);
        attempts.prepared(&undo, "boot-0");
        scene.memory = scene.memory.clone().booted(BOOT);
    })
}

fn link_type(now: Fact<machine::LinkLayer>) -> Scene {
    let to = |link| TuningChange::LinkType {
        function: pci("0000:14:00.0"),
        port: 1,
        link,
    };
    rebooted(to(LinkType::Ethernet), to(LinkType::InfiniBand))
        .with(|scene| scene.machine.nics[0].ports[0].link_layer = now)
}

fn netns(now: Fact<bool>, options: &[(&str, &str)]) -> Scene {
    let to = |shared| TuningChange::RdmaNetns { shared };
    let option = |(file, value): &(&str, &str)| ModuleOption {
        file: (*file).to_owned(),
        value: (*value).to_owned(),
    };
    let options = options.iter().map(option).collect();
    rebooted(to(Some(false)), to(None)).tuned(|tuning| {
        tuning.rdma_netns.shared = now;
        tuning.rdma_netns.options = Fact::Known(options);
    })
}

/// What is left to do, and how many entries the journal keeps.
fn left(scene: &Scene) -> (Option<Action>, usize, Plan) {
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    let mut plan = restore(&scene.state(), &scene.memory, now);
    let there = scene.memory.clone().seen(&plan, false).journal;
    assert_eq!(there, scene.memory.journal, "the way there forgets nothing");
    let kept = scene.memory.clone().seen(&plan, true).journal.changed.len();
    (plan.actions.pop(), kept, plan)
}

#[test]
fn a_way_back_whose_reboot_has_no_effect_is_given_up_and_kept() {
    for stuck in [
        link_type(Fact::Known(machine::LinkLayer::Ethernet)),
        netns(Fact::Known(false), &[]),
    ] {
        let (action, kept, plan) = left(&stuck);
        let action = action.unwrap();
        assert_eq!(
            (action.blocked.as_ref(), kept),
            (Some(&Blocked::NoEffect), 1)
        );
        assert!(action.status().exhausted, "the operator halts");
        assert_eq!(plan.findings[0].id, "ATTEMPTS_EXHAUSTED");
    }
}

#[test]
fn a_way_back_that_is_in_effect_is_done() {
    for done in [
        link_type(Fact::Known(machine::LinkLayer::InfiniBand)),
        link_type(Fact::Absent).with(|scene| scene.machine.nics.clear()),
        netns(Fact::Known(true), &[]),
        netns(Fact::Absent, &[]),
        // Without our option it is as somebody else asks.
        netns(
            Fact::Known(false),
            &[("/etc/modprobe.d/site.conf", "netns_mode=0")],
        ),
    ] {
        let (action, kept, plan) = left(&done);
        assert_eq!((action, kept), (None, 0));
        assert_eq!(plan.findings, []);
    }
}

#[test]
fn a_way_back_that_cannot_be_judged_waits() {
    let why = || "read it: EIO".to_owned();
    for unread in [
        link_type(Fact::Unreadable(why())),
        netns(Fact::Unreadable(why()), &[]),
    ] {
        let (action, kept, plan) = left(&unread);
        let blocked = action.unwrap().blocked;
        assert!(
            matches!(blocked, Some(Blocked::Waits(_))) && kept == 1,
            "{blocked:?}"
        );
        assert_eq!(plan.findings[0].message, why());
    }
}
