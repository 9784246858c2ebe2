use crate::action::Protocol;

use super::*;

fn bootstrap(cidr: &str) -> Opening {
    Opening::new(cidr, Protocol::Tcp, (1024, 65535)).unwrap()
}

fn text(runs: &[Run]) -> Vec<String> {
    runs.iter()
        .map(|(tool, arguments)| format!("{tool} {}", shown(arguments)))
        .collect()
}

#[test]
fn each_keeper_has_its_own_words() {
    let nft = Via::Nft {
        family: "inet".to_owned(),
        table: "filter".to_owned(),
        chain: "input".to_owned(),
    };
    let zone = Via::Firewalld {
        zone: "public".to_owned(),
    };
    let opening = bootstrap("10.10.0.0/16");
    assert_eq!(
        text(&opens(&nft, &opening)),
        [
            "nft insert rule inet filter input ip saddr 10.10.0.0/16 tcp dport 1024-65535 accept comment '\"gpurdma.dev\"'"
        ]
    );
    assert_eq!(
        text(&closes(&nft, &opening, &[7, 9]))[1],
        "nft delete rule inet filter input handle 9"
    );
    assert_eq!(
        text(&opens(&zone, &opening)),
        [
            "firewall-cmd --zone=public '--add-rich-rule=rule family=\"ipv4\" source address=\"10.10.0.0/16\" port port=\"1024-65535\" protocol=\"tcp\" accept'",
            "firewall-cmd --permanent --zone=public '--add-rich-rule=rule family=\"ipv4\" source address=\"10.10.0.0/16\" port port=\"1024-65535\" protocol=\"tcp\" accept'",
        ]
    );
    assert_eq!(
        text(&opens(&Via::Ufw, &opening)),
        ["ufw allow proto tcp from 10.10.0.0/16 to any port 1024:65535 comment gpurdma.dev"]
    );
    assert_eq!(
        text(&closes(&Via::Ufw, &opening, &[])),
        ["ufw delete allow proto tcp from 10.10.0.0/16 to any port 1024:65535"]
    );
    assert_eq!(
        ufw_tuple(&bootstrap("fd00::/64")),
        "allow tcp 1024:65535 ::/0 any fd00::/64 in"
    );
}

#[test]
fn a_chain_of_iptables_is_opened_by_iptables() {
    let input = Via::Nft {
        family: "ip".to_owned(),
        table: "filter".to_owned(),
        chain: "INPUT".to_owned(),
    };
    let roce = Opening::new("10.0.0.0/8", Protocol::Udp, (4791, 4791)).unwrap();
    assert_eq!(
        command(&input, &roce),
        "iptables -I INPUT -p udp -s 10.0.0.0/8 --dport 4791 -m comment --comment gpurdma.dev -j ACCEPT"
    );
}
