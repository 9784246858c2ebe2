//! One golden per scenario about drivers, named after what it shows: `snapshots/`.

mod activate;
mod history;

use crds::cluster::{
    Driver, DriverContainer, DriverSource, GpuDirect, GpuDirectMode, HostPackages,
    PackageRepository,
};
use crds::node::NodeConfig;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use topology::fact::Fact;

use super::super::driver_fixtures::{Fixture, KERNEL, found, package};
use super::super::{Memory, Plan, World, plan};
use crate::action::{Change, DriverChange, Explain};
use crate::desired::Desired;
use crate::job::{Job, Runner, Seen};
use crate::packages::key::tests::KEY;
use crate::render;

const NEXT: &str = "6.8.0-101-generic";

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn of_driver(driver: Driver) -> Desired {
    Desired::of_config(NodeConfig {
        driver,
        ..NodeConfig::default()
    })
    .unwrap()
}

fn packages(version: &str, names: &[&str], repositories: Vec<PackageRepository>) -> Desired {
    of_driver(Driver {
        source: DriverSource::HostPackages,
        host_packages: Some(HostPackages {
            version: version.to_owned(),
            packages: names.iter().map(|&name| name.to_owned()).collect(),
            repositories,
        }),
        ..Driver::default()
    })
}

fn repository() -> PackageRepository {
    PackageRepository {
        url: "https://example.org/doca".to_owned(),
        signing_key: KEY.to_owned(),
        ..PackageRepository::default()
    }
}

fn container(tag: &str) -> Desired {
    of_driver(Driver {
        source: DriverSource::Container,
        container: Some(DriverContainer {
            version: tag.to_owned(),
            ..DriverContainer::default()
        }),
        ..Driver::default()
    })
}

fn gpu_direct(mode: GpuDirectMode) -> Desired {
    Desired::of_config(NodeConfig {
        gpu_direct: GpuDirect {
            mode,
            required: false,
        },
        ..NodeConfig::default()
    })
    .unwrap()
}

fn planned(fixture: &Fixture, desired: &Desired, memory: Memory) -> Plan {
    plan(&World {
        state: &fixture.state,
        machine: &fixture.machine,
        desired,
        memory: &memory.current(desired),
        now: now(),
    })
}

fn golden(scenario: &str, fixture: &Fixture, desired: &Desired) {
    golden_after(scenario, fixture, desired, Memory::default());
}

fn golden_after(scenario: &str, fixture: &Fixture, desired: &Desired, memory: Memory) {
    let plan = planned(fixture, desired, memory);
    let (actions, findings) = (render::actions(&plan), render::findings(&plan.findings));
    insta::assert_snapshot!(scenario, format!("{actions}\n{findings}"));
}

fn golden_restore(scenario: &str, fixture: &Fixture, memory: &Memory) {
    let plan = crate::planner::restore(&fixture.state, memory, now());
    insta::assert_snapshot!(scenario, render::actions(&plan));
}

fn doca() -> Desired {
    packages("2.9.3-1", &[], vec![repository()])
}

#[test]
fn an_existing_driver_is_left_as_it_is() {
    let plan = planned(
        &Fixture::open_driver(),
        &of_driver(Driver::default()),
        Memory::default(),
    );
    assert_eq!(plan, Plan::default());
}

#[test]
fn a_bare_node_gets_its_repository_and_its_packages() {
    golden("bare_node", &Fixture::open_driver(), &doca());
}

#[test]
fn an_older_driver_is_upgraded() {
    let older = Fixture::open_driver().installed("doca-ofed", package("2.9.1-1"));
    golden(
        "older_driver",
        &older,
        &packages("2.9.3-1", &[], Vec::new()),
    );
}

#[test]
fn a_driver_that_is_there_needs_nothing() {
    let there = Fixture::open_driver().installed("doca-ofed", package("2.9.3-1"));
    golden(
        "driver_there",
        &there,
        &packages("2.9.3-1", &[], Vec::new()),
    );
}

#[test]
fn a_release_that_does_not_fit_the_node_is_refused_before_anything_is_touched() {
    // O26: a node image that nobody tested.
    let old = Fixture::open_driver().with(|facts| {
        if let Fact::Known(os) = &mut facts.os.fact {
            os.version_id = Some("18.04".to_owned());
        }
    });
    golden(
        "release_refused",
        &old,
        &packages("3.2.2", &[], vec![repository()]),
    );
}

#[test]
fn a_held_package_is_not_changed() {
    let mut held = package("2.9.1-1");
    held.held = true;
    let held = Fixture::open_driver().installed("doca-ofed", held);
    golden("package_held", &held, &packages("2.9.3-1", &[], Vec::new()));
}

#[test]
fn a_half_configured_package_is_configured_again() {
    let mut half = package("2.9.3-1");
    half.broken = Some("half-configured".to_owned());
    let half = Fixture::open_driver().installed("doca-ofed", half);
    golden(
        "half_configured",
        &half,
        &packages("2.9.3-1", &[], Vec::new()),
    );
}

#[test]
fn somebody_elses_lock_is_waited_for_by_name() {
    let locked = Fixture::open_driver().with(|facts| {
        let lock = "/var/lib/dpkg/lock-frontend".to_owned();
        facts.install.packages.locks = Fact::Known([(lock, 811)].into());
    });
    golden("lock_held", &locked, &packages("2.9.3-1", &[], Vec::new()));
}

#[test]
fn an_image_based_host_is_refused_and_told_what_to_use() {
    let image = Fixture::open_driver().with(|facts| {
        facts.install.packages.immutable = found("Talos: it has no package manager".to_owned());
    });
    golden("immutable_host", &image, &doca());
    let none =
        Fixture::open_driver().with(|facts| facts.install.packages.manager.fact = Fact::Absent);
    golden("no_package_manager", &none, &doca());
}

#[test]
fn an_unreadable_package_database_is_not_an_empty_one() {
    let blind = Fixture::open_driver().with(|facts| {
        facts.install.packages.installed.fact =
            Fact::Unreadable("rpm: no answer within 20 s".to_owned());
    });
    golden("database_unreadable", &blind, &doca());
}

#[test]
fn a_key_by_url_is_refused_on_apt() {
    let by_url = PackageRepository {
        signing_key: "https://example.org/key".to_owned(),
        ..repository()
    };
    golden(
        "key_by_url",
        &Fixture::open_driver(),
        &packages("2.9.3-1", &[], vec![by_url]),
    );
}

#[test]
fn peermem_is_loaded_where_it_fits() {
    golden(
        "peermem_loadable",
        &Fixture::closed_driver(),
        &gpu_direct(GpuDirectMode::Auto),
    );
}

#[test]
fn peermem_is_not_loaded_where_it_does_not_fit() {
    let other = Fixture::closed_driver().checksums(Some(8), Some(7));
    golden("peermem_misfit", &other, &gpu_direct(GpuDirectMode::Auto));
    // O1: another's driver container.
    golden(
        "peermem_of_gpu_operator",
        &Fixture::closed_driver().gpu_operator(),
        &gpu_direct(GpuDirectMode::Peermem),
    );
}

#[test]
fn a_module_asked_for_twice_is_loaded_once() {
    let mut desired = gpu_direct(GpuDirectMode::Auto);
    desired
        .modules
        .insert(crate::modules::ModuleName::new("nvidia_peermem").unwrap());
    let plan = planned(&Fixture::closed_driver(), &desired, Memory::default());
    assert_eq!(plan.actions.len(), 1);
}

#[test]
fn a_driver_container_is_ready_by_what_is_loaded() {
    golden(
        "container_loaded",
        &Fixture::open_driver(),
        &container("doca2.9.3-24.10-1.1.4.0-0"),
    );
    golden(
        "container_other_version",
        &Fixture::open_driver(),
        &container("doca3.2.2-25.10-1.2.8.0-2"),
    );
    let none = Fixture::open_driver().with(|facts| facts.ofed_version.fact = Fact::Absent);
    golden(
        "container_not_loaded",
        &none,
        &container("doca2.9.3-24.10-1.1.4.0-0"),
    );
    // G84: a text that nobody understands is no error.
    let odd =
        Fixture::open_driver().with(|facts| facts.ofed_version = found("new format".to_owned()));
    golden(
        "container_odd_version",
        &odd,
        &container("doca2.9.3-24.10-1.1.4.0-0"),
    );
}

#[test]
fn a_kernel_that_has_no_modules_is_seen_before_it_boots() {
    // G83
    let both = &[(KERNEL, 1), (NEXT, 1)];
    let base = || {
        Fixture::open_driver()
            .next_kernel(NEXT)
            .dkms("mlnx-ofed-kernel", both, None)
    };
    golden(
        "next_kernel_without_gpu",
        &base().dkms("nvidia", &[(KERNEL, 2)], None),
        &of_driver(Driver::default()),
    );
    golden(
        "next_kernel_wrong_order",
        &base().dkms("nvidia", &[(KERNEL, 2), (NEXT, 0)], None),
        &of_driver(Driver::default()),
    );
    let ready = base().dkms("nvidia", &[(KERNEL, 2), (NEXT, 2)], None);
    assert_eq!(
        planned(&ready, &of_driver(Driver::default()), Memory::default()),
        Plan::default()
    );
}

#[test]
fn a_failed_build_is_told_before_the_reboot() {
    // G77
    let failed = Fixture::open_driver().dkms("mlnx-ofed-kernel", &[(KERNEL, 1)], Some(NEXT));
    golden("build_failed", &failed, &of_driver(Driver::default()));
    let since = Fixture::open_driver().dkms("mlnx-ofed-kernel", &[(NEXT, 1)], Some(NEXT));
    assert_eq!(
        planned(&since, &of_driver(Driver::default()), Memory::default()),
        Plan::default()
    );
}

#[test]
fn a_default_link_to_another_kernel_is_seen() {
    // G8
    let stale = Fixture::open_driver()
        .with(|facts| facts.install.ofed_default = found("5.15.0-1-generic".to_owned()));
    golden("default_link", &stale, &of_driver(Driver::default()));
}

#[test]
fn a_blacklist_that_a_driver_container_left_is_seen() {
    let left = Fixture::open_driver().with(|facts| {
        facts.install.blacklisted = found(vec!["ib_umad".to_owned(), "mlx5_core".to_owned()]);
    });
    golden("blacklist", &left, &of_driver(Driver::default()));
}

#[test]
fn a_module_whose_signature_is_refused_is_named_with_the_remedy() {
    // G76
    let desired = gpu_direct(GpuDirectMode::Peermem);
    let name = crate::modules::ModuleName::new("nvidia_peermem").unwrap();
    let change = Change::LoadModule(name);
    let mut memory = Memory::default().current(&desired);
    memory.attempts.begin(&change, now());
    memory.attempts.end(&change, Some("modprobe nvidia_peermem: exit status: 1: could not insert 'nvidia_peermem': Key was rejected by service"));
    golden_after(
        "signature_rejected",
        &Fixture::closed_driver(),
        &desired,
        memory,
    );
}

#[test]
fn a_costly_change_is_one_that_touches_traffic() {
    use crds::node::Cost;
    let plan = planned(&Fixture::open_driver(), &doca(), Memory::default());
    let costs: Vec<_> = plan
        .actions
        .iter()
        .map(|action| action.change.cost())
        .collect();
    assert_eq!(costs, [Cost::None, Cost::Traffic]);
}
