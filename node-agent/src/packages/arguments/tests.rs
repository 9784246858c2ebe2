use super::super::PackageVersion;
use super::super::key::tests::KEY;
use super::*;
use crds::cluster::PackageRepository;

fn wishes() -> Wishes {
    let version = Wish::Version(PackageVersion::new("3.2.2-1").unwrap());
    [
        (PackageName::new("doca-ofed").unwrap(), version),
        (PackageName::new("mlnx-tools").unwrap(), Wish::Absent),
    ]
    .into()
}

fn lines(calls: &[Invocation]) -> String {
    let line = |call: &Invocation| format!("{}\n  {}\n", call.program, call.arguments.join("\n  "));
    calls.iter().map(line).collect()
}

#[test]
fn each_manager_is_called_with_typed_arguments() {
    let repository = Repository::new(&PackageRepository {
        url: "https://example.org/doca".to_owned(),
        signing_key: KEY.to_owned(),
        ..PackageRepository::default()
    })
    .unwrap();
    for (name, manager) in [
        ("apt", Manager::Apt),
        ("dnf", Manager::Dnf),
        ("zypper", Manager::Zypper),
    ] {
        let calls = [
            refresh(manager, std::slice::from_ref(&repository)),
            change(manager, &wishes()),
        ];
        insta::assert_snapshot!(name, lines(&calls.concat()));
    }
}

#[test]
fn nothing_is_called_where_nothing_is_wished() {
    assert!(change(Manager::Apt, &Wishes::new()).is_empty());
}

#[test]
fn names_stand_after_the_end_of_the_options() {
    for manager in [Manager::Apt, Manager::Dnf, Manager::Zypper] {
        for call in change(manager, &wishes()) {
            let end = call.arguments.iter().position(|word| word == "--").unwrap();
            assert_eq!(end, call.arguments.len() - 2, "{call:?}");
        }
    }
}
