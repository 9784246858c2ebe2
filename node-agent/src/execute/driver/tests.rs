//! Stand-in programs below a temporary root, for arguments and failure texts only; the package manager itself is tested on
//! a real host.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crds::cluster::PackageRepository;
use host::facts::install::packages::Manager;
use host::root::Root;

use super::*;
use crate::action::Action;
use crate::execute::execute;
use crate::packages::key::tests::KEY;
use crate::packages::repository::Repository;
use crate::packages::{PackageName, PackageVersion, Wish, Wishes};
use crate::settings::ATTEMPTS_FILE;

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A Debian host whose chroot notes each call and then runs `script`.
fn host(script: &str) -> (tempfile::TempDir, Settings) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    put(root, "var/lib/gpurdma/keep", "");
    put(
        root,
        "var/lib/dpkg/status",
        "Package: bash\nStatus: install ok installed\nVersion: 5\n",
    );
    put(root, "usr/bin/apt-get", "");
    put(
        root,
        "chroot",
        &format!("#!/bin/sh\nroot=$1; shift\necho \"$*\" >> \"$root/calls\"\n{script}\n"),
    );
    let chroot = root.join("chroot");
    std::fs::set_permissions(&chroot, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = Settings {
        chroot,
        ..Settings::new(Root::new(root))
    };
    (directory, settings)
}

fn wishes(wish: Wish) -> Wishes {
    [(PackageName::new("mydriver").unwrap(), wish)].into()
}

fn set(wishes: Wishes) -> Change {
    Change::Driver(DriverChange::SetPackages {
        manager: Manager::Apt,
        wishes,
    })
}

fn install_one() -> Change {
    set(wishes(Wish::Version(PackageVersion::new("1.0").unwrap())))
}

fn run(settings: &Settings, change: Change, memory: &mut Memory) -> Result<(), String> {
    let state = HostState {
        boot_id: "boot-1".to_owned(),
        ..HostState::default()
    };
    let undo = match &change {
        Change::Driver(DriverChange::SetRepository {
            manager,
            repository,
            ..
        }) => Change::Driver(DriverChange::SetRepository {
            manager: *manager,
            repository: repository.clone(),
            there: false,
        }),
        // The way back is its own undo, as the planner has it.
        Change::Driver(DriverChange::SetPackages { wishes, .. })
            if wishes.values().all(|wish| *wish == Wish::Absent) =>
        {
            change.clone()
        }
        _ => set(wishes(Wish::Absent)),
    };
    let action = Action {
        change,
        undo: Some(undo),
        precondition: String::new(),
        attempts: 0,
        budget: 3,
        blocked: None,
        last_error: None,
    };
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    execute(settings, &state, &action, memory, now).map_err(|error| crate::gather::chain(&error))
}

const INSTALLS: &str = r#"case "$*" in *install*) printf '\nPackage: mydriver\nStatus: install ok installed\nVersion: 1.0\n\nPackage: itsdep\nStatus: install ok installed\nVersion: 2\n' >> "$root/var/lib/dpkg/status";; esac"#;

#[test]
fn packages_are_installed_and_what_came_with_them_goes_with_them() {
    let (directory, settings) = host(INSTALLS);
    let mut memory = Memory::default();
    run(&settings, install_one(), &mut memory).unwrap();
    let calls = std::fs::read_to_string(directory.path().join("calls")).unwrap();
    let calls: Vec<_> = calls.lines().collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(
        calls[0].starts_with("apt-get") && calls[0].ends_with("update"),
        "{}",
        calls[0]
    );
    assert!(
        calls[1].starts_with("setsid apt-get") && calls[1].ends_with("install -- mydriver=1.0"),
        "{}",
        calls[1]
    );
    let entry = memory.journal.changed.values().next().unwrap();
    assert_eq!(entry.undo.desired(), "itsdep absent, mydriver absent");
    assert_eq!(job::seen(&settings.root, "boot-1").unwrap(), None);
    assert!(
        memory.attempts.actions.is_empty(),
        "what is verified gives its budget back"
    );
}

#[test]
fn success_without_effect_is_a_failure_and_the_log_says_why() {
    let script =
        "case \"$*\" in *install*) echo \"E: Version '1.0' for 'mydriver' was not found\"; esac";
    let (_keep, settings) = host(script);
    let mut memory = Memory::default();
    let error = run(&settings, install_one(), &mut memory).unwrap_err();
    assert!(
        error.contains("no repository has the package in that version (`E: Version '1.0'"),
        "{error}"
    );
    assert_eq!(memory.attempts.of(&install_one()).0, 1);
}

#[test]
fn an_update_that_fails_stops_before_the_installation() {
    let script = "case \"$*\" in *update) echo \"E: The repository 'https://example.org ./ Release' is not signed.\" >&2; exit 100; esac";
    let (directory, settings) = host(script);
    let error = run(&settings, install_one(), &mut Memory::default()).unwrap_err();
    assert!(error.contains("what is unsigned is refused"), "{error}");
    let calls = std::fs::read_to_string(directory.path().join("calls")).unwrap();
    assert_eq!(calls.lines().count(), 1);
}

#[test]
fn a_run_that_an_agent_left_behind_is_not_started_twice() {
    let (directory, settings) = host(INSTALLS);
    put(
        directory.path(),
        "run/systemd/transient/gpurdma-packages.service",
        "",
    );
    let left = Job {
        change: install_one().attempt_key(),
        boot_id: "boot-1".to_owned(),
        at: Time("2026-03-01T11:58:00Z".parse().unwrap()),
        runner: Runner::Systemd,
        before: ["bash".to_owned()].into(),
        last: true,
        attempt: 1,
    };
    crate::store::write_json(&settings.root, job::JOB_FILE, &left).unwrap();
    let mut memory = Memory::default();
    let error = run(&settings, install_one(), &mut memory).unwrap_err();
    assert!(
        error.ends_with("runs since 2026-03-01T11:58:00Z; a later turn sees how it ends"),
        "{error}"
    );
    assert!(!directory.path().join("calls").exists());
    assert_eq!(
        memory.attempts.of(&install_one()).0,
        1,
        "it was counted when it began"
    );
    std::fs::remove_file(
        directory
            .path()
            .join("run/systemd/transient/gpurdma-packages.service"),
    )
    .unwrap();
    put(
        directory.path(),
        "var/lib/dpkg/status",
        "Package: bash\nStatus: install ok installed\nVersion: 5\n\nPackage: mydriver\nStatus: install ok installed\nVersion: 1.0\n",
    );
    run(&settings, install_one(), &mut memory).unwrap();
    assert!(
        !directory.path().join("calls").exists(),
        "it was settled, not run again"
    );
    let entry = memory.journal.changed.values().next().unwrap();
    assert_eq!(entry.undo.desired(), "mydriver absent");
    assert!(memory.attempts.actions.is_empty());
}

/// A run that ended while the agent was away, and what it said.
fn left_behind(settings: &Settings, memory: &mut Memory, log: &str) {
    let change = install_one();
    let began = "2026-03-01T11:59:59Z".parse().unwrap();
    memory.attempts.begin(&change, began);
    let left = Job {
        change: change.attempt_key(),
        boot_id: "boot-0".to_owned(),
        at: Time(began),
        runner: Runner::Systemd,
        before: ["bash".to_owned()].into(),
        last: true,
        attempt: memory.attempts.of(&change).0,
    };
    crate::store::write_json(&settings.root, job::JOB_FILE, &left).unwrap();
    put(
        settings.root.path(),
        job::LOG_FILE.trim_start_matches('/'),
        log,
    );
}

#[test]
fn a_run_that_was_cut_off_goes_on_in_the_turn_that_sees_it() {
    let (directory, settings) = host(INSTALLS);
    let mut memory = Memory::default();
    left_behind(&settings, &mut memory, "Setting up itsdep (2) ...\n");
    run(&settings, install_one(), &mut memory).unwrap();
    let calls = std::fs::read_to_string(directory.path().join("calls")).unwrap();
    assert!(
        calls.trim_end().ends_with("install -- mydriver=1.0"),
        "{calls}"
    );
    assert!(memory.attempts.actions.is_empty());
    let entry = memory.journal.changed.values().next().unwrap();
    assert_eq!(
        entry.undo.desired(),
        "itsdep absent, mydriver absent",
        "of both runs"
    );
}

#[test]
fn a_run_that_failed_while_nobody_looked_is_one_failed_attempt() {
    let (directory, settings) = host(INSTALLS);
    let mut memory = Memory::default();
    let said = "E: Sub-process /usr/bin/dpkg returned an error code (1)\n";
    left_behind(&settings, &mut memory, said);
    let error = run(&settings, install_one(), &mut memory).unwrap_err();
    assert!(error.contains("returned an error code (1)"), "{error}");
    assert_eq!(memory.attempts.of(&install_one()).0, 1);
    assert!(
        !directory.path().join("calls").exists(),
        "and no second one"
    );
    assert_eq!(job::seen(&settings.root, "boot-1").unwrap(), None);
    run(&settings, install_one(), &mut memory).unwrap();
}

/// What is on disk while the package manager runs is what an agent leaves that is killed then.
#[test]
fn a_run_that_is_cut_off_thrice_is_not_started_again() {
    let script =
        r#"case "$*" in *install*) cp "$root/var/lib/gpurdma/"*.json "$root/killed/";; esac"#;
    let (directory, settings) = host(script);
    let (killed, kept) = (
        directory.path().join("killed"),
        directory.path().join("var/lib/gpurdma"),
    );
    std::fs::create_dir(&killed).unwrap();
    let mut memory = Memory::default();
    for attempt in 1..=3 {
        run(&settings, install_one(), &mut memory).unwrap_err();
        for name in ["attempts.json", "packages.json"] {
            std::fs::copy(killed.join(name), kept.join(name)).unwrap();
        }
        put(&kept, "packages.log", "Unpacking mydriver (1.0) ...\n");
        let attempts = crate::store::read_json(&settings.root, ATTEMPTS_FILE);
        memory.attempts = attempts.unwrap().unwrap();
        assert_eq!(memory.attempts.of(&install_one()).0, attempt);
    }
    let calls = || std::fs::read_to_string(directory.path().join("calls")).unwrap();
    let before = calls();
    let error = run(&settings, install_one(), &mut memory).unwrap_err();
    assert!(error.contains("was cut off 3 times"), "{error}");
    assert_eq!(calls(), before);
    assert_eq!(job::seen(&settings.root, "boot-1").unwrap(), None);
    let blocked = memory
        .attempts
        .blocks(&install_one(), "2026-03-02T00:00:00Z".parse().unwrap());
    assert_eq!(blocked, Some(crate::action::Blocked::Exhausted));
}

#[test]
fn an_interrupted_dpkg_goes_on_first() {
    let script = format!(
        "case \"$*\" in *configure*) rm \"$root/var/lib/dpkg/updates/0001\";; esac\n{INSTALLS}"
    );
    let (directory, settings) = host(&script);
    put(directory.path(), "var/lib/dpkg/updates/0001", "");
    run(&settings, install_one(), &mut Memory::default()).unwrap();
    let calls = std::fs::read_to_string(directory.path().join("calls")).unwrap();
    assert!(
        calls.starts_with("setsid dpkg --force-confdef --force-confold --configure --pending\n"),
        "{calls}"
    );
    assert!(
        calls.trim_end().ends_with("install -- mydriver=1.0"),
        "{calls}"
    );
}

#[test]
fn a_removal_that_fails_stays_in_the_journal() {
    let (_keep, settings) = host(INSTALLS);
    let mut memory = Memory::default();
    run(&settings, install_one(), &mut memory).unwrap();
    let undo = memory.journal.changed.values().next().unwrap().undo.clone();
    assert!(run(&settings, undo.clone(), &mut memory).is_err());
    assert_eq!(memory.journal.changed.values().next().unwrap().undo, undo);
}

#[test]
fn a_repository_is_described_readably_and_forgotten_whole() {
    let (directory, settings) = host("");
    let repository = Repository::new(&PackageRepository {
        url: "https://example.org/doca".to_owned(),
        signing_key: KEY.to_owned(),
        ..PackageRepository::default()
    })
    .unwrap();
    let change = |there| {
        Change::Driver(DriverChange::SetRepository {
            manager: Manager::Apt,
            repository: repository.clone(),
            there,
        })
    };
    let mut memory = Memory::default();
    run(&settings, change(true), &mut memory).unwrap();
    let path = directory
        .path()
        .join(repository.file(Manager::Apt).trim_start_matches('/'));
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o644
    );
    assert_eq!(memory.journal.changed.len(), 1);
    run(&settings, change(false), &mut memory).unwrap();
    assert!(!path.exists());
    assert!(memory.journal.changed.is_empty(), "nothing is left to undo");
}

/// Restarts openibd on a host with nvidia-peermem loaded.
fn restart_openibd(directory: &Path, settings: &Settings) -> Result<(), ExecuteError> {
    put(directory, "proc/modules", "nvidia_peermem 1 0 - Live 0x0\n");
    put(directory, "proc/sys/kernel/random/boot_id", "boot-1");
    let facts = host::facts::facts(&settings.root, &host::machine::Options::default(), None);
    let state = HostState::try_from(facts).unwrap();
    let change = DriverChange::ActivateDriver {
        way: Activation::Openibd,
        version: "1".to_owned(),
    };
    let now = "2026-03-01T12:00:00Z".parse().unwrap();
    perform(settings, &state, &change, &mut Memory::default(), now)
}

#[test]
fn openibd_runs_with_peermem_out_of_the_way_and_back_again() {
    let script = r#"case "$*" in rmmod*) : > "$root/proc/modules";; modprobe*) echo "nvidia_peermem 1 0 - Live 0x0" > "$root/proc/modules";; esac"#;
    let (directory, settings) = host(script);
    put(directory.path(), "proc/sys/kernel/osrelease", "6.8");
    put(directory.path(), "lib/modules/6.8/modules.dep", "");
    restart_openibd(directory.path(), &settings).unwrap();
    let calls = std::fs::read_to_string(directory.path().join("calls")).unwrap();
    let expected =
        "rmmod -- nvidia_peermem\nsetsid /etc/init.d/openibd restart\nmodprobe -- nvidia_peermem\n";
    assert_eq!(calls, expected);
}

/// G6: someone loads it between the unload and the restart.
#[test]
fn a_peermem_that_comes_back_at_once_leaves_the_old_driver_running() {
    let (directory, settings) = host("");
    let error = restart_openibd(directory.path(), &settings).unwrap_err();
    assert!(
        error.to_string().contains("the old driver still runs"),
        "{error}"
    );
    let calls = std::fs::read_to_string(directory.path().join("calls")).unwrap();
    assert_eq!(calls, "rmmod -- nvidia_peermem\n");
}
