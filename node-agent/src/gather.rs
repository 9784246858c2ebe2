//! Reads everything that a cycle decides on: facts of the host, the kubelet's answer, CDI specifications, and what the
//! agent wrote before. Writes nothing. What cannot be read is a finding, never a failed cycle; only a host without a
//! boot id is one, because nothing could be told from another boot, and a host that cannot be read in time.

use std::collections::BTreeSet;
use std::time::Duration;

use crds::node::Finding;
use host::facts::tuning::Tuning;
use host::facts::{Facts, facts};
use host::machine::Options;
use host::root::Root;
use k8s_openapi::jiff::Timestamp;
use tokio::net::UnixStream;
use topology::fact::Fact;
use topology::machine::Machine;

use crate::asked::Asked;
use crate::evidence::Evidence;
use crate::findings::FindingId;
use crate::foreign;
use crate::host_state::{HostState, NoBootId};
use crate::injection::{self, Injection};
use crate::job;
use crate::observed::{Before, Observed, Platform};
use crate::packages::database;
use crate::podresources;
use crate::reader::{Reader, ReaderError};
use crate::session::Session;
use crate::settings::Settings;
use crate::state_files;
use crate::store::read_text;
use crate::tools::Tools;

/// How long reading the host may take; it takes milliseconds as a rule.
const DEADLINE: Duration = Duration::from_secs(20);

/// How long another device plugin may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(1);

/// Why nothing can be decided.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The boot id, without which nothing is decided, could not be read.
    #[error(transparent)]
    BootId(#[from] NoBootId),
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
    let (known, asked) = (session.facts(), session.asked);
    let kubelet = ask_kubelet(settings, session, now).await;
    let work = move || gather_host(&own, kubelet, last.as_ref(), known.as_deref(), asked);
    session.reader.read(DEADLINE, work).await?
}

/// Whether the kubelet says something else at `now` than in the last turn.
pub async fn kubelet_changed(settings: &Settings, session: &mut Session, now: Timestamp) -> bool {
    let answer = ask_kubelet(settings, session, now).await;
    session.kubelet() != Some(&answer)
}

/// Everything but the kubelet, whose answer is given. `last` is what the agent's own files said last, for those that
/// cannot be read now; `known` are the facts of the last turn;
/// `asked` says what must be read beyond what costs little.
pub fn gather_host(
    settings: &Settings,
    kubelet: Evidence,
    last: Option<&Before>,
    known: Option<&Facts>,
    asked: Asked,
) -> Result<Observed, GatherError> {
    let options = Options {
        gpu_vendors: settings.gpu_vendors.clone(),
        network: asked.network,
    };
    let mut findings = Vec::new();
    let mut facts = facts(&settings.root, &options, known);
    facts.tuning = tuning(settings, &facts, known, asked);
    let mut state = host_state(settings, facts, &mut findings)?;
    state.node_addresses.clone_from(&settings.node_addresses);
    unreadable_built_in(&state.facts, &mut findings);
    let before = state_files::read(settings, &state.boot_id, last, &mut findings);
    let machine = machine(&state.facts, &mut findings);
    let injection = injection(settings, &machine, &mut findings);
    if let Some(why) = kubelet.silence() {
        let message = format!(
            "{why}. Devices admitted before stay; others wait for the answer: start the kubelet, or name its directory in --kubelet-root"
        );
        findings.push(FindingId::KubeletUnreachable.about("kubelet", message));
    }
    let platform = Platform::from(&state.facts);
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

/// Configuration spaces are slow to read and change seldom: where nothing is asked of them and no port redirected, what was
/// read counts as long as the functions are the same.
fn tuning(settings: &Settings, facts: &Facts, known: Option<&Facts>, mut asked: Asked) -> Tuning {
    let same = |known: &&Facts| known.machine.functions == facts.machine.functions;
    let quiet = |known: &&Facts| {
        let acs = known.tuning.pcie.values().map(|function| &function.acs);
        acs.filter_map(Fact::known).all(|acs| acs.redirects() == 0)
    };
    let before = known.filter(same).filter(quiet);
    let before = before.filter(|_| !asked.scope.pcie);
    asked.scope.pcie = before.is_none();
    let mut tuning = Tools::new(settings).tuning(&facts.machine, asked);
    if let Some(before) = before {
        tuning.pcie.clone_from(&before.tuning.pcie);
    }
    tuning
}

/// The facts, with what only the host's own tools and the agent's own files say.
fn host_state(
    settings: &Settings,
    mut facts: Facts,
    findings: &mut Vec<Finding>,
) -> Result<HostState, GatherError> {
    let packages = &mut facts.install.packages;
    packages.installed.fact = database::installed(settings, packages);
    let mut state = HostState::try_from(facts)?;
    state.compat = settings.compat.clone();
    state.job = job::seen(&settings.root, &state.boot_id).unwrap_or_else(|error| {
        findings.push(FindingId::StateUnreadable.about(job::JOB_FILE, error.chain()));
        None
    });
    Ok(state)
}

async fn ask_kubelet(settings: &Settings, session: &mut Session, now: Timestamp) -> Evidence {
    let path = settings.kubelet_socket();
    // Links of the host (k3s, MicroK8s) are followed inside the host's root.
    let socket = match settings.root.resolve(&path) {
        Ok(real) => settings.root.join(&real),
        Err(error) => return Evidence::silent(error.chain()),
    };
    let plugins = nvidia_plugins(settings).await;
    let before = podresources::socket_id(&socket);
    let deadline = podresources::DEADLINE;
    match session.connection.ask(&socket, deadline).await {
        Ok(devices) => {
            let sockets = [before, podresources::socket_id(&socket)];
            Evidence::answered(devices, sockets, session.socket(), now).beside(plugins)
        }
        Err(error) => Evidence::silent(chain(&error)).beside(plugins),
    }
}

/// Resources of NVIDIA's plugins that listen in the kubelet's directory. A plugin that ended leaves at most a socket
/// that nobody listens at. Nothing is asked of them: a second reader of their list would take news from the kubelet.
async fn nvidia_plugins(settings: &Settings) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // Links of the host are followed inside the host's root, as for the kubelet's socket.
    let Ok(folder) = settings.root.resolve(&settings.device_plugins()) else {
        return found;
    };
    for name in settings.root.list_dir(&folder).unwrap_or_default() {
        let Some(resource) = foreign::resource_of_socket(&name) else {
            continue;
        };
        let path = settings.root.join(&format!("{folder}/{name}"));
        let connected = tokio::time::timeout(CONNECT, UnixStream::connect(path)).await;
        if matches!(connected, Ok(Ok(_))) {
            found.insert(resource);
        }
    }
    found
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

fn unreadable_built_in(facts: &Facts, findings: &mut Vec<Finding>) {
    let (file, known) = (&facts.built_in, facts.kernel_release.fact.known());
    if let (Fact::Unreadable(why), Some(_)) = (&file.fact, known) {
        findings.push(FindingId::HostUnreadable.about(&file.source, why));
    }
}

/// The machine, with the distances of the first topology file that can be read.
#[must_use]
pub fn machine(facts: &Facts, findings: &mut Vec<Finding>) -> Machine {
    let mut machine = facts.machine.clone();
    for file in &facts.topology_files {
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

fn injection(settings: &Settings, machine: &Machine, findings: &mut Vec<Finding>) -> Injection {
    let root = &settings.root;
    let mut found = Injection::default();
    for directory in settings.cdi_dirs() {
        toolkit(root, directory, &mut found);
    }
    for (path, why) in &found.unreadable {
        let message = format!("{why}: write it anew (`nvidia-ctk cdi generate`) or remove it");
        findings.push(FindingId::CdiSpecUnreadable.about(path, message));
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
