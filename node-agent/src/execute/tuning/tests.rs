use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use host::facts::Facts;
use host::fixture::{FixtureOptions, write};
use host::machine::Options;
use host::root::Root;

use topology::machine::PciKind;

use super::*;
use crate::action::{Opening, Protocol, Via};
use crate::asked::Asked;
use crate::tools::Tools;

/// A described machine in a temporary directory; `chroot` stands in for the program of that name.
struct Host {
    settings: Settings,
    state: HostState,
    directory: tempfile::TempDir,
}

impl Host {
    fn new(acs_control: u16) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path());
        let path = format!(
            "{}/../topology/tests/machines/nvidia-dgx-h100.yaml",
            env!("CARGO_MANIFEST_DIR")
        );
        let machine = topology::file::parse(&std::fs::read_to_string(path).unwrap())
            .unwrap()
            .machine;
        let options = FixtureOptions {
            name: "tuning".to_owned(),
            acs_control,
            ..FixtureOptions::default()
        };
        write(&machine, &options, &root).unwrap();
        let settings = Settings::new(root);
        let mut facts: Facts = ::host::facts::facts(&settings.root, &Options::default(), None);
        facts.tuning = Tools::new(&settings).tuning(&facts.machine, Asked::default());
        let state = HostState::try_from(facts).unwrap();
        Self {
            settings,
            state,
            directory,
        }
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Has `tool` run as `script` says, with the root as `$root`.
    fn tool(&mut self, tool: &str, script: &str) {
        self.put(&format!("usr/sbin/{tool}"), &format!("#!/bin/sh\n{script}"));
        self.put(
            "chroot",
            "#!/bin/sh\nexport root=$1\ntool=$2\nshift 2\nexec \"$root/usr/sbin/$tool\" \"$@\"\n",
        );
        self.settings.chroot = self.directory.path().join("chroot");
    }

    fn act(&self, change: &TuningChange) -> Result<(), String> {
        perform(&self.settings, &self.state, change).map_err(|error| chain(&error))?;
        verify(&self.settings, change)
    }

    /// A downstream or root port with access control services, and a NIC's function below it.
    fn port_and_nic(&self) -> (PciAddress, PciAddress) {
        let machine = &self.state.facts.machine;
        let nic = machine.nics.iter().find_map(|nic| nic.pci).unwrap();
        let is_port = |pci: &PciAddress| {
            let kind = machine.functions[pci].kind;
            matches!(kind, PciKind::RootPort | PciKind::SwitchDownstream)
        };
        let bridges = ::host::facts::tuning::pcie::above(machine, nic);
        let port = bridges.into_iter().find(is_port).unwrap();
        (port, nic)
    }

    fn config(&self, pci: PciAddress) -> Vec<u8> {
        self.settings
            .root
            .bytes(&format!("/sys/bus/pci/devices/{pci}/config"))
            .unwrap()
    }
}

#[test]
fn only_the_redirecting_bits_change_and_they_come_back() {
    let host = Host::new(0x1d);
    let (port, _) = host.port_and_nic();
    let before = host.config(port);
    let to = |bits| TuningChange::AcsRedirects { port, bits };
    assert_eq!(
        verify(&host.settings, &to(0)),
        Err(format!("{port} has ReqRedir+ CmpltRedir+ UpstreamFwd+"))
    );
    host.act(&to(0)).unwrap();
    let after = host.config(port);
    let differ: Vec<_> = (0..4096).filter(|at| before[*at] != after[*at]).collect();
    assert_eq!(differ, [0x156]);
    assert_eq!(after[0x156], 0x01, "source validation stays");
    host.act(&to(0x1c)).unwrap();
    assert_eq!(host.config(port), before);
}

#[test]
fn a_port_is_left_alone_where_a_guest_was_given_a_device_since_the_plan() {
    let host = Host::new(0x1d);
    let (port, nic) = host.port_and_nic();
    host.put(&format!("sys/bus/pci/drivers/vfio-pci/{nic}"), "");
    let error = host
        .act(&TuningChange::AcsRedirects { port, bits: 0 })
        .unwrap_err();
    assert_eq!(
        error,
        format!("{port} is left as it is: {nic} behind it belongs to vfio-pci")
    );
    assert_eq!(host.config(port)[0x156], 0x1d);
}

#[test]
fn registers_that_are_hidden_or_absent_are_not_written() {
    let host = Host::new(0x1d);
    let (port, nic) = host.port_and_nic();
    let error = host
        .act(&TuningChange::AcsRedirects { port: nic, bits: 0 })
        .unwrap_err();
    assert!(error.contains("no access control services"), "{error}");
    let real = host
        .settings
        .root
        .resolve(&format!("/sys/bus/pci/devices/{port}/config"))
        .unwrap();
    std::fs::write(host.settings.root.join(&real), &host.config(port)[..64]).unwrap();
    let error = host
        .act(&TuningChange::AcsRedirects { port, bits: 0 })
        .unwrap_err();
    assert!(error.contains("64 of 4096 bytes"), "{error}");
}

#[test]
fn a_read_request_keeps_the_other_fields_of_its_register() {
    let host = Host::new(0);
    let (_, nic) = host.port_and_nic();
    let to = |bytes| TuningChange::MaxReadRequest {
        function: nic,
        bytes,
    };
    host.act(&to(4096)).unwrap();
    assert_eq!(
        host.config(nic)[0x68..0x6a],
        0x5020_u16.to_le_bytes(),
        "256 bytes of payload stay"
    );
    host.act(&to(128)).unwrap();
    assert_eq!(host.config(nic)[0x68..0x6a], 0x0020_u16.to_le_bytes());
    assert!(host.act(&to(1000)).is_err());
}

#[test]
fn the_namespace_mode_is_an_option_of_our_own_file() {
    let host = Host::new(0);
    let to = |shared| TuningChange::RdmaNetns { shared };
    host.act(&to(Some(false))).unwrap();
    let text = host.settings.root.text(NETNS_FILE).unwrap();
    assert!(text.ends_with("options ib_core netns_mode=0"), "{text}");
    let netns = Tools::new(&host.settings)
        .tuning(&host.state.facts.machine, Asked::default())
        .rdma_netns;
    assert_eq!(netns.options.known().unwrap()[0].value, "netns_mode=0");
    host.act(&to(None)).unwrap();
    assert!(
        verify(&host.settings, &to(Some(false))).is_err_and(|seen| seen.contains("there is no"))
    );
    host.act(&to(None)).unwrap();
}

const FIRMWARE_TOOL: &str = "for word; do last=$word; done\n\
    case \"$*\" in\n\
    *' set '*) echo \"${last#*=}\" > \"$root/next\"; echo \"$last\" >> \"$root/written\" ;;\n\
    *) printf 'Configurations: Default Current Next\\n* %s IB(1) IB(1) X(%s)\\n' \"$last\" \"$(cat \"$root/next\" 2>/dev/null || echo 1)\" ;;\n\
    esac\n";

#[test]
fn a_link_type_is_proved_by_the_value_of_the_next_boot() {
    let mut host = Host::new(0);
    let (_, function) = host.port_and_nic();
    let to = |link| TuningChange::LinkType {
        function,
        port: 1,
        link,
    };
    assert!(
        host.act(&to(LinkType::Ethernet))
            .unwrap_err()
            .contains("mstconfig is not installed")
    );
    host.tool("mstconfig", FIRMWARE_TOOL);
    host.act(&to(LinkType::Ethernet)).unwrap();
    assert_eq!(host.settings.root.text("/next").unwrap(), "2");
    // O51: firmware that is written again and again.
    host.act(&to(LinkType::Ethernet)).unwrap();
    assert_eq!(
        host.settings.root.text("/written").unwrap(),
        "LINK_TYPE_P1=2"
    );
    assert!(
        verify(&host.settings, &to(LinkType::InfiniBand))
            .is_err_and(|seen| seen.contains("will be X(2)"))
    );
    host.tool("mstconfig", "exit 0\n");
    assert!(
        host.act(&to(LinkType::Ethernet))
            .unwrap_err()
            .contains("shows no LINK_TYPE_P1"),
        "success without effect"
    );
}

fn opening() -> Opening {
    Opening::new("10.10.0.0/16", Protocol::Tcp, (1024, 65535)).unwrap()
}

/// A fresh network namespace, where this machine has nft and lets us make one.
struct Namespace(Child);

impl Namespace {
    fn new() -> Option<Self> {
        let works = |program: &str, arguments: &[&str]| {
            let status = Command::new(program)
                .args(arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            status.is_ok_and(|status| status.success())
        };
        let can = works("unshare", &["-n", "nft", "add", "table", "inet", "probe"]);
        can.then(|| {
            Self(
                Command::new("unshare")
                    .args(["-n", "sleep", "600"])
                    .spawn()
                    .unwrap(),
            )
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What nft does with one chain, for machines without it.
const RECORDED_NFT: &str = r#"rule='{"rule":{"family":"inet","table":"site","chain":"input","handle":7,"comment":"gpurdma.dev","expr":[{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":{"prefix":{"addr":"10.10.0.0","len":16}}}},{"match":{"op":"==","left":{"payload":{"protocol":"tcp","field":"dport"}},"right":{"range":[1024,65535]}}},{"accept":null}]}}'
case "$*" in
'-j list ruleset') printf '{"nftables":[{"chain":{"family":"inet","table":"site","name":"input","handle":1,"type":"filter","hook":"input","prio":0,"policy":"drop"}}%s]}' "$(cat "$root/rules" 2>/dev/null)" ;;
'insert rule inet site input ip saddr 10.10.0.0/16 tcp dport 1024-65535 accept comment "gpurdma.dev"') printf ',%s' "$rule" > "$root/rules" ;;
'delete rule inet site input handle 7') rm "$root/rules" ;;
*) echo "nft: $*" >&2; exit 1 ;;
esac
"#;

#[test]
fn nftables_lets_in_what_was_opened_and_forgets_it_when_closed() {
    let mut host = Host::new(0);
    let namespace = Namespace::new();
    match &namespace {
        Some(Namespace(process)) => {
            let enter = format!("exec nsenter -t {} -n nft \"$@\"\n", process.id());
            host.tool("nft", &enter);
            let tools = Tools::new(&host.settings);
            let ask = |words: &[&str]| tools.ask("nft", words, FIRMWARE).unwrap();
            ask(&["add", "table", "inet", "site"]);
            ask(&[
                "add",
                "chain",
                "inet",
                "site",
                "input",
                "{ type filter hook input priority 0; policy drop; }",
            ]);
            ask(&[
                "add", "rule", "inet", "site", "input", "tcp", "dport", "22", "accept",
            ]);
        }
        None => host.tool("nft", RECORDED_NFT),
    }
    let via = Via::Nft {
        family: "inet".to_owned(),
        table: "site".to_owned(),
        chain: "input".to_owned(),
    };
    let to = |open| TuningChange::Firewall {
        via: via.clone(),
        opening: opening(),
        open,
    };
    assert!(verify(&host.settings, &to(true)).is_err());
    host.act(&to(true)).unwrap();
    assert!(
        verify(&host.settings, &to(false)).is_err_and(|seen| seen.contains("still lists our rule"))
    );
    host.act(&to(false)).unwrap();
    assert!(verify(&host.settings, &to(true)).is_err());
}

#[test]
fn a_name_that_the_tool_would_misread_never_reaches_it() {
    let mut host = Host::new(0);
    host.tool("nft", "touch \"$root/ran\"\n");
    let via = Via::Nft {
        family: "inet".to_owned(),
        table: "site; flush ruleset".to_owned(),
        chain: "input".to_owned(),
    };
    let change = TuningChange::Firewall {
        via,
        opening: opening(),
        open: true,
    };
    assert!(host.act(&change).is_err());
    assert!(host.settings.root.text("/ran").is_err());
}

#[test]
fn ufw_is_proved_by_its_file_and_firewalld_by_its_list() {
    let mut host = Host::new(0);
    host.put("etc/ufw/ufw.conf", "ENABLED=yes\n");
    host.tool("ufw", "case $1 in allow) echo \"### tuple ### allow $3 $9 0.0.0.0/0 any $5 in comment=67\" > \"$root/etc/ufw/user.rules\" ;; *) : > \"$root/etc/ufw/user.rules\" ;; esac\n");
    let to = |via: Via, open| TuningChange::Firewall {
        via,
        opening: opening(),
        open,
    };
    host.act(&to(Via::Ufw, true)).unwrap();
    host.act(&to(Via::Ufw, false)).unwrap();
    let zone = || Via::Firewalld {
        zone: "public".to_owned(),
    };
    host.tool("firewall-cmd", "case \"$*\" in *--list-all-zones) printf 'public (active)\\n  target: default\\n  rich rules: \\n\\t%s\\n' \"$(cat \"$root/rich\")\" ;; --permanent*) ;; *--add-rich-rule=*) echo \"${2#--add-rich-rule=}\" > \"$root/rich\" ;; *) : > \"$root/rich\" ;; esac\n");
    host.act(&to(zone(), true)).unwrap();
    host.act(&to(zone(), false)).unwrap();
    host.tool(
        "firewall-cmd",
        "echo FirewallD is not running >&2; exit 252\n",
    );
    assert!(
        host.act(&to(zone(), true))
            .unwrap_err()
            .contains("not running")
    );
}
