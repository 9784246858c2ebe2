use std::os::unix::fs::PermissionsExt;

use host::facts::Sourced;
use host::facts::install::packages::DPKG_STATUS;
use host::root::Root;

use super::*;

fn says(script: &str) -> (tempfile::TempDir, Fact<Installed>) {
    let directory = tempfile::tempdir().unwrap();
    let chroot = directory.path().join("chroot");
    std::fs::write(&chroot, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&chroot, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = Settings {
        chroot,
        ..Settings::new(Root::new(directory.path()))
    };
    let packages = Packages {
        installed: Sourced {
            source: "/var/lib/rpm/rpmdb.sqlite".to_owned(),
            fact: Fact::Unreadable(ASK_RPM.to_owned()),
        },
        ..Packages::default()
    };
    let found = installed(&settings, &packages);
    (directory, found)
}

#[test]
fn rpm_is_asked_where_its_database_is_no_text() {
    let script = "test \"$2\" = rpm && printf 'doca-ofed\\t0:3.2.2-1.el9\\nkernel\\t1:5.14-1\\n'";
    let (_keep, found) = says(script);
    let found = found.known().unwrap();
    assert_eq!(found["doca-ofed"].version, "3.2.2-1.el9");
    assert_eq!(found["kernel"].version, "1:5.14-1");
}

#[test]
fn an_rpm_that_fails_makes_nothing_absent() {
    let (_keep, found) = says("echo 'error: cannot open database' >&2; exit 1");
    assert!(matches!(found, Fact::Unreadable(why) if why.contains("cannot open database")));
}

#[test]
fn what_host_could_read_is_not_asked_again() {
    let packages = Packages {
        installed: Sourced {
            source: DPKG_STATUS.to_owned(),
            fact: Fact::Known(Installed::new()),
        },
        ..Packages::default()
    };
    let nowhere = Settings {
        chroot: "/nonexistent/chroot".into(),
        ..Settings::new(Root::new("/nonexistent"))
    };
    assert_eq!(
        installed(&nowhere, &packages),
        Fact::Known(Installed::new())
    );
}
