use super::*;

#[test]
fn a_plugin_is_a_name_a_program_and_arguments() {
    let plugin: Contestant = "other=/opt/plugin --config=/etc/x.json  -v"
        .parse()
        .unwrap();
    assert_eq!(plugin.name, "other");
    assert_eq!(
        plugin.command,
        ["/opt/plugin", "--config=/etc/x.json", "-v"]
    );
    assert_eq!(plugin.resource, None);
    for wrong in ["", "/opt/plugin", "=/opt/plugin", "other=", "other=  "] {
        assert!(wrong.parse::<Contestant>().is_err(), "{wrong:?}");
    }
}

#[test]
fn placeholders_stand_for_the_places_of_a_node() {
    let plugin: Contestant = "other=run --dir={dir} {root}/sys {node-file} {else}"
        .parse()
        .unwrap();
    let places = Places {
        dir: "/k".into(),
        root: "/tree".into(),
        node_file: "/run/node.json".into(),
    };
    let filled = plugin.filled(&places);
    assert_eq!(
        filled,
        ["run", "--dir=/k", "/tree/sys", "/run/node.json", "{else}"]
    );
}

#[test]
fn memory_is_read_by_the_names_of_its_lines() {
    let status = "Name:\tx\nVmHWM:\t    9000 kB\nVmRSS:\t    8000 kB\nRssAnon:\t    1500 kB\nRssFile:\t    6500 kB\n";
    let expected = Memory {
        rss: 8000,
        anon: 1500,
        file: 6500,
    };
    assert_eq!(memory(status), Some(expected));
    assert_eq!(memory("Name:\tx\n"), None);
    assert_eq!(kib(status, "VmHWM:"), Some(9000));
}
