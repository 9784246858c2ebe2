//! Reads everything that a cycle decides on: facts of the host, the kubelet's answer, CDI specifications, and what the
//! agent wrote before. Writes nothing. What cannot be read is a finding, never a failed cycle; only a host without a
//! boot id is one, because nothing could be told from another boot, and a host that cannot be read in time.

use std::collections::BTreeSet;
use std::time::Duration;

use crds::node::Finding;
use host::facts::{driver, kernel, platform, topology_files};
use host::machine::{self, Options};
use host::root::Root;
use k8s_openapi::jiff::Timestamp;
use topology::fact::Fact;
use topology::machine::Machine;

use crate::evidence::Evidence;
use crate::findings::FindingId;
use crate::host_state::HostState;
use crate::injection::{self, Injection};
use crate::modules::{self, ModuleName};
use crate::observed::{Before, Observed, Platform};
use crate::podresources;
use crate::reader::{Reader, ReaderError};
use crate::session::Session;
use crate::settings::{OPENIB_CONF, Settings};
use crate::state_files;
use crate::store::read_text;

/// How long reading the host may take; it takes milliseconds as a rule.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why nothing can be decided.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The boot id, without which nothing is decided, could not be read.
    #[error("read the host's boot id: {0}; is the host's root mounted where --root says?")]
    BootId(String),
    /// The host could not be read in time.
    #[error(transparent)]
    Reader(#[from] ReaderError),
}

/// What reading the host gives.
pub type HostReader = Reader<Result<Observed, GatherError>>;

/// Reads everything. `session` knows what this process saw before; `now` is the time of the turn.
pub async fn gather(
    settings: &Settings,
    session: &mut Session,
    now: Timestamp,
) -> Result<Observed, GatherError> {
    let (own, last) = (settings.clone(), session.last().cloned());
    let kubelet = ask_kubelet(settings, session, now).await;
    let work = move || gather_host(&own, kubelet, last.as_ref());
    session.reader.read(DEADLINE, work).await?
}

/// Everything but the kubelet, whose answer is given. `last` is what the agent's own files said last, for those that
/// cannot be read now.
pub fn gather_host(
    settings: &Settings,
    kubelet: Evidence,
    last: Option<&Before>,
) -> Result<Observed, GatherError> {
    let root = &settings.root;
    let options = Options {
        gpu_vendors: settings.gpu_vendors.clone(),
    };
    let mut findings = Vec::new();
    let state = host_state(root, &mut findings)?;
    let before = state_files::read(settings, &state.boot_id, last, &mut findings);
    let machine = machine(root, &options, &mut findings);
    let injection = injection(settings, &machine, &mut findings);
    if let Some(why) = kubelet.silence() {
        let message = format!("{why}. Devices admitted before stay; others wait for the answer");
        findings.push(FindingId::KubeletUnreachable.about("kubelet", message));
    }
    let platform = platform(root);
    Ok(Observed {
        machine,
        platform,
        state,
        kubelet,
        injection,
        before,
        findings,
    })
}

async fn ask_kubelet(settings: &Settings, session: &Session, now: Timestamp) -> Evidence {
    let path = settings.kubelet_socket();
    // Links of the host (k3s, MicroK8s) are followed inside the host's root.
    let socket = match settings.root.resolve(&path) {
        Ok(real) => settings.root.join(&real),
        Err(error) => return Evidence::silent(error.chain()),
    };
    let before = podresources::socket_id(&socket);
    match podresources::ask(&socket, podresources::DEADLINE).await {
        Ok(devices) => {
            let sockets = [before, podresources::socket_id(&socket)];
            Evidence::answered(devices, sockets, session.socket(), now)
        }
        Err(error) => Evidence::silent(chain(&error)),
    }
}

/// An error and its causes on one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Not all of `host::facts::facts`: a search through the kernel's symbols is too much for every ten seconds.
fn host_state(root: &Root, findings: &mut Vec<Finding>) -> Result<HostState, GatherError> {
    let found = kernel::boot_id(root);
    let boot_id = match found.fact {
        Fact::Known(id) => id,
        Fact::Absent => return Err(GatherError::BootId(format!("{} is absent", found.source))),
        Fact::Unreadable(why) => return Err(GatherError::BootId(why)),
    };
    let release = kernel::release(root).fact.known().cloned();
    let openib_conf = match read_text(root, OPENIB_CONF) {
        Ok(text) => Fact::from(text),
        Err(error) => Fact::Unreadable(error.chain()),
    };
    Ok(HostState {
        boot_id,
        modules: modules::from_facts(kernel::modules(root).fact),
        built_in: built_in(root, release.as_deref(), findings),
        openib_conf,
        infiniband_dir: root.resolve("/etc/infiniband").is_ok(),
        openibd: root.resolve("/etc/init.d/openibd").is_ok(),
        openibd_invocation: openibd_invocation(root),
        ofed: driver::ofed_version(root).fact.known().is_some(),
    })
}

/// `modules.builtin` of the running kernel: one path per line, `kernel/drivers/…/ib_core.ko` (kbuild, kmod).
fn built_in(
    root: &Root,
    release: Option<&str>,
    findings: &mut Vec<Finding>,
) -> BTreeSet<ModuleName> {
    let Some(release) = release else {
        return BTreeSet::new();
    };
    let path = format!("/lib/modules/{release}/modules.builtin");
    let text = read_text(root, &path).unwrap_or_else(|error| {
        findings.push(FindingId::HostUnreadable.about(&path, error.chain()));
        None
    });
    let name = |line: &str| {
        let file = line.rsplit('/').next()?;
        ModuleName::new(file.trim().strip_suffix(".ko")?).ok()
    };
    text.unwrap_or_default().lines().filter_map(name).collect()
}

/// systemd keeps the id of a unit's present run as the target of a link (`systemd.exec(5)`, `$INVOCATION_ID`).
fn openibd_invocation(root: &Root) -> Option<String> {
    root.link_target("/run/systemd/units/invocation:openibd.service")
        .ok()
}

/// The machine, with the distances of the first topology file that can be read.
fn machine(root: &Root, options: &Options, findings: &mut Vec<Finding>) -> Machine {
    let mut machine = machine::machine(root, options);
    for file in &topology_files::files(root) {
        let Fact::Known(text) = &file.fact else {
            continue;
        };
        match topology::nccl_xml::read(text, &file.source, &machine) {
            Ok(stated) => {
                machine.stated = Some(stated);
                break;
            }
            Err(error) => {
                findings.push(FindingId::HostUnreadable.about(&file.source, chain(&error)));
            }
        }
    }
    machine
}

fn platform(root: &Root) -> Platform {
    let os = platform::os_release(root)
        .fact
        .known()
        .map(|os| match &os.version_id {
            Some(version) => format!("{} {version}", os.id),
            None => os.id.clone(),
        });
    Platform {
        os,
        kernel: kernel::release(root).fact.known().cloned(),
        gpu_driver: driver::gpu_driver(root)
            .fact
            .known()
            .map(|driver| driver.version.clone()),
    }
}

fn injection(settings: &Settings, machine: &Machine, findings: &mut Vec<Finding>) -> Injection {
    let root = &settings.root;
    let mut found = Injection::default();
    let directories: BTreeSet<&str> =
        ["/etc/cdi", "/var/run/cdi", settings.cdi_dir.as_str()].into();
    for directory in directories {
        toolkit(root, directory, &mut found);
    }
    for (path, why) in &found.unreadable {
        findings.push(FindingId::CdiSpecUnreadable.about(path, why));
    }
    let wanted = injection::wanted_nodes(&machine.gpus, &machine.nics);
    found.nodes = wanted
        .into_iter()
        .filter(|node| root.resolve(node).is_ok())
        .collect();
    found
}

fn toolkit(root: &Root, directory: &str, found: &mut Injection) {
    let names = match root.list_dir(directory) {
        Ok(names) => names,
        Err(error) if error.is_not_found() => return,
        Err(error) => return drop(found.unreadable.insert(directory.to_owned(), error.chain())),
    };
    // Runtimes read these endings only, in lower case.
    let ending = |name: &String| name.rsplit_once('.').map(|(_, ending)| ending.to_owned());
    let is_spec = |name: &String| matches!(ending(name).as_deref(), Some("json" | "yaml"));
    for name in names
        .into_iter()
        .filter(is_spec)
        .filter(|name| name != crate::cdi::FILE)
    {
        let path = format!("{directory}/{name}");
        match read_text(root, &path)
            .map(|text| injection::toolkit_devices(&text.unwrap_or_default()))
        {
            Ok(Ok(devices)) => found.toolkit.extend(devices),
            Ok(Err(error)) => drop(found.unreadable.insert(path, error.to_string())),
            Err(error) => drop(found.unreadable.insert(path, error.chain())),
        }
    }
}
