//! Settings in a NIC's firmware, as `mstconfig -e -d ADDRESS query NAME…` prints them: a line per setting with its default,
//! current and next value; `*` marks one whose next value differs. Pure. "Next" is what the following boot brings, "current"
//! is in effect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use topology::fact::Fact;
use topology::pci::PciAddress;

use super::ToolAnswers;

/// Settings by name (`LINK_TYPE_P1`).
pub type Settings = BTreeMap<String, Setting>;

/// One setting; values as the tool writes them: `ETH(2)`, `True(1)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// In effect.
    pub current: String,
    /// After the next boot.
    pub next: String,
}

impl Setting {
    /// The number in brackets, or the number that the value is.
    #[must_use]
    pub fn number(value: &str) -> Option<u64> {
        let digits = match value.split_once('(') {
            Some((_, rest)) => rest.strip_suffix(')')?,
            None => value,
        };
        digits.parse().ok()
    }
}

pub(crate) fn read(answers: &ToolAnswers) -> BTreeMap<PciAddress, Fact<Settings>> {
    let parsed = answers.firmware.iter().map(|(pci, answer)| {
        let settings = match answer {
            Fact::Known(text) => parse(text).map_or_else(
                || Fact::Unreadable("mstconfig printed no configuration".to_owned()),
                Fact::Known,
            ),
            Fact::Absent => Fact::Absent,
            Fact::Unreadable(why) => Fact::Unreadable(why.clone()),
        };
        (*pci, settings)
    });
    parsed.collect()
}

/// The settings of a query; `None` where the text has no list of configurations.
#[must_use]
pub fn parse(text: &str) -> Option<Settings> {
    let mut lines = text.lines();
    lines.find(|line| line.trim_start().starts_with("Configurations:"))?;
    Some(lines.filter_map(setting).collect())
}

fn setting(line: &str) -> Option<(String, Setting)> {
    let words: Vec<_> = line
        .trim_start()
        .trim_start_matches('*')
        .split_whitespace()
        .collect();
    let [name, _default, current, next] = words[..] else {
        return None;
    };
    let is_name = name
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    is_name.then(|| {
        let setting = Setting {
            current: current.to_owned(),
            next: next.to_owned(),
        };
        (name.to_owned(), setting)
    })
}

#[cfg(test)]
mod tests;
