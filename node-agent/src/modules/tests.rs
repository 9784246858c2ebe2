use super::*;

#[test]
fn names_are_normalised_and_checked() {
    assert_eq!(
        ModuleName::new("nvidia-peermem").unwrap().as_str(),
        "nvidia_peermem"
    );
    for bad in ["", "-r", "a b", "a/b", "a;b", "$(id)", &"x".repeat(56)] {
        assert!(ModuleName::new(bad).is_err(), "{bad}");
    }
}

fn listed(name: &str, state: &str) -> Module {
    Module {
        name: name.to_owned(),
        size: Fact::Known(0),
        references: Fact::Absent,
        holders: vec![],
        state: state.to_owned(),
        version: Fact::Absent,
        source_version: Fact::Absent,
    }
}

#[test]
fn an_unknown_state_makes_the_list_unreadable() {
    let known = from_facts(Fact::Known(vec![
        listed("ib_umad", "Live"),
        listed("nvidia", "Loading"),
    ]));
    let Fact::Known(modules) = known else {
        panic!("{known:?}")
    };
    assert_eq!(
        modules[&ModuleName::new("ib-umad").unwrap()],
        ModuleState::Live
    );
    assert_eq!(
        modules[&ModuleName::new("nvidia").unwrap()],
        ModuleState::Loading
    );
    let odd = from_facts(Fact::Known(vec![listed("ib_umad", "Dormant")]));
    assert_eq!(
        odd,
        Fact::Unreadable("/proc/modules: `ib_umad Dormant`".to_owned())
    );
    assert_eq!(from_facts(Fact::Absent), Fact::Absent);
}

/// A stand-in for `chroot` that writes its arguments where the test can read them.
#[test]
fn runs_the_hosts_modprobe_without_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let script = dir.path().join("chroot");
    let text = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", log.display());
    std::fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let tool = ModuleTool {
        root: "/host".into(),
        chroot: script,
        deadline: DEADLINE,
    };
    assert_eq!(
        tool.load(&ModuleName::new("ib-umad").unwrap()).unwrap(),
        Outcome::Succeeded
    );
    assert_eq!(
        std::fs::read_to_string(&log).unwrap(),
        "/host\nmodprobe\n--\nib_umad\n"
    );
    assert_eq!(
        tool.unload(&ModuleName::new("ib_umad").unwrap()).unwrap(),
        Outcome::Succeeded
    );
    assert_eq!(
        std::fs::read_to_string(&log).unwrap(),
        "/host\nrmmod\n--\nib_umad\n"
    );
}
