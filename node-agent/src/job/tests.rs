use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A host whose chroot is a program of the test.
fn host(script: &str) -> (tempfile::TempDir, Settings) {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "var/lib/gpurdma/keep", "");
    put(
        directory.path(),
        "chroot",
        &format!("#!/bin/sh\n{script}\n"),
    );
    let chroot = directory.path().join("chroot");
    std::fs::set_permissions(&chroot, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = Settings {
        chroot,
        ..Settings::new(Root::new(directory.path()))
    };
    (directory, settings)
}

fn job(runner: Runner) -> Job {
    Job {
        change: "SetPackages/packages/x=1".to_owned(),
        boot_id: "boot-1".to_owned(),
        at: Time("2026-03-01T12:00:00Z".parse().unwrap()),
        runner,
        before: BTreeSet::new(),
        last: true,
        attempt: 1,
    }
}

fn what() -> Invocation {
    Invocation {
        program: "apt-get",
        arguments: vec![
            "--yes".to_owned(),
            "install".to_owned(),
            "--".to_owned(),
            "x=1".to_owned(),
        ],
    }
}

#[test]
fn systemd_runs_it_as_a_unit_that_outlives_the_agent() {
    let arguments = unit_arguments(&Root::new("/host"), &what());
    let shown: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    insta::assert_snapshot!("unit", shown.join("\n"));
}

#[test]
fn a_unit_is_found_again_by_an_agent_that_starts_anew() {
    let (directory, settings) = host("touch \"$1/run/systemd/transient/gpurdma-packages.service\"");
    put(directory.path(), "run/systemd/system/x", "");
    put(directory.path(), "run/systemd/transient/x", "");
    let patience = Duration::from_millis(120);
    let ended = start_and_wait(&settings, job(Runner::Starting), &what(), patience).unwrap();
    assert!(!ended);
    let found = seen(&settings.root, "boot-1").unwrap().unwrap();
    assert!(found.runs && found.job.runner == Runner::Systemd);
    assert!(
        !seen(&settings.root, "boot-2").unwrap().unwrap().runs,
        "no unit outlives its boot"
    );
    std::fs::remove_file(
        directory
            .path()
            .join("run/systemd/transient/gpurdma-packages.service"),
    )
    .unwrap();
    assert!(!seen(&settings.root, "boot-1").unwrap().unwrap().runs);
    settle(&settings.root).unwrap();
    assert_eq!(seen(&settings.root, "boot-1").unwrap(), None);
}

#[test]
fn a_unit_that_systemd_refuses_is_an_error_with_its_words() {
    let (directory, settings) = host("echo 'Failed to start transient service unit' >&2; exit 1");
    put(directory.path(), "run/systemd/system/x", "");
    let error =
        start_and_wait(&settings, job(Runner::Starting), &what(), Duration::ZERO).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("Failed to start transient service unit"),
        "{error}"
    );
    let left = seen(&settings.root, "boot-1").unwrap();
    assert_eq!(left, None, "what was not started has not been cut off");
}

#[test]
fn without_systemd_it_runs_in_a_session_of_its_own_and_writes_a_log() {
    let (_keep, settings) = host("echo \"$2 $3 $4 $5 $6 $7 $DEBIAN_FRONTEND\"; echo late >&2");
    let patience = Duration::from_secs(20);
    let ended = start_and_wait(&settings, job(Runner::Starting), &what(), patience).unwrap();
    assert!(ended);
    assert_eq!(
        log(&settings.root),
        "setsid apt-get --yes install -- x=1 noninteractive\nlate\n"
    );
    let found = seen(&settings.root, "boot-1").unwrap().unwrap();
    assert!(
        !found.runs,
        "a process that nobody can look up does not run"
    );
}

#[test]
fn a_process_is_told_from_a_later_one_of_the_same_number() {
    let (directory, settings) = host("exit 0");
    let of = |started| Runner::Process { pid: 4711, started };
    let stat = "4711 (apt (x) get) S 1 4711 4711 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 98765 1 1";
    put(directory.path(), "proc/4711/stat", stat);
    let runs = |started| {
        write_json(&settings.root, JOB_FILE, &job(of(started))).unwrap();
        seen(&settings.root, "boot-1").unwrap().unwrap().runs
    };
    assert!(runs(Some(98765)));
    assert!(!runs(Some(11)));
    assert!(!runs(None));
}
