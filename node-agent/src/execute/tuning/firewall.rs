//! Opens and closes the host's firewall through its keeper, and reads the rules back.

use std::time::Duration;

use host::facts::tuning::firewall::ufw_rules;
use host::facts::tuning::firewall::{parse_ruleset, zones};
use topology::fact::Fact;

use super::super::ExecuteError;
use crate::action::{Opening, Via};
use crate::firewall_rules::{closes, is_ours, opens, rich_rule, ufw_tuple};
use crate::gather::chain;
use crate::settings::Settings;
use crate::tools::Tools;

const DEADLINE: Duration = Duration::from_secs(20);

pub(super) fn set(
    settings: &Settings,
    via: &Via,
    opening: &Opening,
    open: bool,
) -> Result<(), ExecuteError> {
    if !via.is_plain() {
        return Err(ExecuteError::Refused {
            what: via.to_string(),
            why: "its name could be read as something else by the tool".to_owned(),
        });
    }
    let tools = Tools::new(settings);
    let runs = if open {
        opens(via, opening)
    } else {
        let handles = handles(&tools, via, opening).map_err(|why| ExecuteError::Refused {
            what: via.to_string(),
            why,
        })?;
        closes(via, opening, &handles)
    };
    for (tool, arguments) in runs {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        tools.ask(tool, &arguments, DEADLINE)?;
    }
    Ok(())
}

/// Whether our rule is there when it should be, and is not when it should not.
pub(super) fn verify(
    settings: &Settings,
    via: &Via,
    opening: &Opening,
    open: bool,
) -> Result<(), String> {
    match (is_open(settings, via, opening)?, open) {
        (true, true) | (false, false) => Ok(()),
        (true, false) => Err(format!("{via} still lists our rule for {opening}")),
        (false, true) => Err(format!("{via} does not list our rule for {opening}")),
    }
}

fn is_open(settings: &Settings, via: &Via, opening: &Opening) -> Result<bool, String> {
    let tools = Tools::new(settings);
    match via {
        Via::Firewalld { zone } => {
            let arguments = ["--list-all-zones"];
            let text = tools
                .ask("firewall-cmd", &arguments, DEADLINE)
                .map_err(|error| chain(&error))?;
            let found = zones(&text).into_iter().find(|one| one.name == *zone);
            let found = found.ok_or_else(|| format!("firewalld has no zone {zone}"))?;
            Ok(found.rich_rules.contains(&rich_rule(opening)))
        }
        Via::Ufw => match ufw_rules(&settings.root) {
            Fact::Known(rules) => Ok(rules.contains(&ufw_tuple(opening))),
            Fact::Absent => Err("ufw is not enabled".to_owned()),
            Fact::Unreadable(why) => Err(why),
        },
        Via::Nft { .. } => handles(&tools, via, opening).map(|handles| !handles.is_empty()),
    }
}

/// Handles of our rules for exactly these packets.
fn handles(tools: &Tools, via: &Via, opening: &Opening) -> Result<Vec<u64>, String> {
    let Via::Nft {
        family,
        table,
        chain: name,
    } = via
    else {
        return Ok(Vec::new());
    };
    let text = tools
        .ask("nft", &["-j", "list", "ruleset"], DEADLINE)
        .map_err(|error| chain(&error))?;
    let chains = parse_ruleset(&text).map_err(|error| format!("read nft's ruleset: {error}"))?;
    let own = chains
        .into_iter()
        .filter(|c| (&c.family, &c.table, &c.name) == (family, table, name));
    let accepts = own.flat_map(|chain| chain.accepts);
    let ours = accepts.filter(|accept| is_ours(accept, opening));
    Ok(ours.map(|accept| accept.handle).collect())
}
