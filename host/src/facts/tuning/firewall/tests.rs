use super::*;

const RULESET: &str = r#"{"nftables": [
 {"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
 {"table": {"family": "inet", "name": "filter", "handle": 1}},
 {"chain": {"family": "inet", "table": "filter", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}},
 {"chain": {"family": "inet", "table": "filter", "name": "forward", "handle": 2, "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
 {"chain": {"family": "inet", "table": "late", "name": "in", "handle": 3, "type": "filter", "hook": "input", "prio": 10, "policy": "accept"}},
 {"rule": {"family": "inet", "table": "filter", "chain": "input", "handle": 4, "comment": "gpurdma.dev", "expr": [
   {"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": {"prefix": {"addr": "10.0.0.0", "len": 16}}}},
   {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": {"range": [1024, 65535]}}},
   {"counter": {"packets": 0, "bytes": 0}}, {"accept": null}]}},
 {"rule": {"family": "inet", "table": "filter", "chain": "input", "handle": 5, "expr": [
   {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established", "related"]}}, {"accept": null}]}},
 {"rule": {"family": "inet", "table": "late", "chain": "in", "handle": 6, "expr": [{"counter": {"packets": 9, "bytes": 9}}, {"reject": {"type": "icmpx", "expr": "admin-prohibited"}}]}}
]}"#;

#[test]
fn input_chains_come_in_order_with_what_they_surely_accept() {
    let chains = parse_ruleset(RULESET).unwrap();
    let seen: Vec<_> = chains
        .iter()
        .map(|c| (c.table.as_str(), c.drops, c.accepts.len()))
        .collect();
    assert_eq!(seen, [("filter", true, 1), ("late", true, 0)]);
    let accept = &chains[0].accepts[0];
    assert_eq!(
        (accept.handle, accept.comment.as_deref()),
        (4, Some("gpurdma.dev"))
    );
    let packets = Packets {
        source: Some("10.0.0.0/16".to_owned()),
        protocol: Some("tcp".to_owned()),
        ports: Some((1024, 65535)),
    };
    assert_eq!(accept.packets, packets);
    assert!(parse_ruleset("Operation not permitted").is_err());
}

#[test]
fn zones_have_interfaces_and_rich_rules() {
    let text = "block\n  target: %%REJECT%%\n  interfaces: \n\npublic (default, active)\n  target: default\n  interfaces: eth0 ens1f0\n  services: ssh\n  rich rules: \n\trule family=\"ipv4\" source address=\"10.0.0.0/16\" accept\n";
    let zones = zones(text);
    assert_eq!(
        zones.iter().map(|z| z.name.as_str()).collect::<Vec<_>>(),
        ["block", "public"]
    );
    assert_eq!(zones[0].target, "%%REJECT%%");
    assert_eq!(zones[1].interfaces, ["eth0", "ens1f0"]);
    assert_eq!(
        zones[1].rich_rules,
        ["rule family=\"ipv4\" source address=\"10.0.0.0/16\" accept"]
    );
}
