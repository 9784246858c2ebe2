use std::os::unix::fs::PermissionsExt;

use super::*;

/// A host with one tool, run by a stand-in for chroot that starts it below the root.
fn host(tool: &str, script: &str) -> (tempfile::TempDir, Tools) {
    let directory = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    put(&format!("usr/sbin/{tool}"), script);
    let chroot = put(
        "chroot",
        "#!/bin/sh\nroot=$1\ntool=$2\nshift 2\nexec \"$root/usr/sbin/$tool\" \"$@\"\n",
    );
    let settings = Settings {
        chroot,
        ..Settings::new(Root::new(directory.path()))
    };
    let tools = Tools::new(&settings);
    (directory, tools)
}

#[test]
fn the_hosts_own_tool_answers_and_its_failure_is_told() {
    let (_directory, tools) = host("nft", "#!/bin/sh\necho \"$@\"\n");
    assert_eq!(
        tools
            .ask("nft", &["-j", "list ruleset; $(id)"], QUESTION)
            .unwrap(),
        "-j list ruleset; $(id)\n"
    );
    let (_directory, tools) = host("nft", "#!/bin/sh\necho no >&2; exit 3\n");
    assert!(
        matches!(tools.firewall().nft_ruleset, Fact::Unreadable(why) if why == "nft: exit status: 3: no")
    );
}

#[test]
fn the_agents_tools_do_not_speak_for_another_machine() {
    let (_directory, tools) = host("nothing", "");
    let Fact::Unreadable(why) = tools.firewall().nft_ruleset else {
        panic!("nft answered for a tree without it");
    };
    assert!(why.starts_with("nft is not installed"), "{why}");
}

#[test]
fn a_setting_that_a_card_does_not_know_hides_no_other() {
    let script = "#!/bin/sh\n[ \"$5\" = ATS_ENABLED ] && exit 3\nprintf 'Configurations: Default Current Next\\n %s IB(1) IB(1) IB(1)\\n' \"$5\"\n";
    let (_directory, tools) = host("mstconfig", script);
    let pci: PciAddress = "0000:1b:00.0".parse().unwrap();
    let text = tools.firmware(&[pci]).firmware[&pci].clone();
    let settings = ::host::facts::tuning::firmware::parse(text.known().unwrap()).unwrap();
    assert_eq!(
        settings.keys().collect::<Vec<_>>(),
        ["LINK_TYPE_P1", "LINK_TYPE_P2"]
    );
}
