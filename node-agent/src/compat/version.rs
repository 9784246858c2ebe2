//! Versions as the field writes them. Pure; what is no version is kept as text and compares with nothing.

use std::cmp::Ordering;

/// Numbers of a dotted version.
fn numbers(text: &str) -> Vec<u64> {
    leading(text)
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

/// The digits and dots that a text begins with: `3.2.2` of `3.2.2-025010`.
#[must_use]
pub fn leading(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    text.trim_end_matches('.').to_owned()
}

/// The first number.
#[must_use]
pub fn family(text: &str) -> String {
    text.split('.').next().unwrap_or_default().to_owned()
}

/// Whether `a` is older than `b`, as far as both are written out: `2.9.3` is not older than `2.9`, nor newer.
#[must_use]
pub fn older(a: &str, b: &str) -> bool {
    compare(a, b) == Some(Ordering::Less)
}

/// How two versions compare, number by number, up to the end of the shorter; `None` where one has no number.
#[must_use]
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    let (a, b) = (numbers(a), numbers(b));
    let common = a.len().min(b.len());
    if common == 0 {
        return None;
    }
    Some(a.get(..common)?.cmp(b.get(..common)?))
}

/// Whether `version` is `listed` or a minor release of it: `9` covers `9.4`, `22.04` does not cover `22.10`.
#[must_use]
pub fn covers(listed: &str, version: &str) -> bool {
    version == listed
        || version
            .strip_prefix(listed)
            .is_some_and(|rest| rest.starts_with('.'))
}

/// The version of OFED's kernel part, in any of the forms in which it is written: `MLNX_OFED_LINUX-24.10-3.2.5.0:`,
/// `OFED-internal-25.10-…`, `doca3.2.2-25.10-2.4.1.0-4`, `25.10-1.2.8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ofed {
    train: (u64, u64),
    build: Vec<u64>,
}

impl Ofed {
    /// Finds the version in a text; `None` where it has none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text
            .split(['-', ':', '_', ' ', '\n'])
            .filter(|word| !word.is_empty())
            .collect();
        let at = words.iter().position(|word| train(word).is_some())?;
        Some(Self {
            train: train(words.get(at)?)?,
            build: words
                .get(at + 1)
                .map(|word| numbers(word))
                .unwrap_or_default(),
        })
    }

    /// `25.10`.
    #[must_use]
    pub fn number(&self) -> String {
        format!("{}.{:02}", self.train.0, self.train.1)
    }

    /// Whether both are the same build, as far as both tell it.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        let common = self.build.len().min(other.build.len());
        self.train == other.train && self.build.get(..common) == other.build.get(..common)
    }
}

/// `25.10`: a year and a month, or one of the two-digit releases before.
fn train(word: &str) -> Option<(u64, u64)> {
    let (year, month) = word.split_once('.')?;
    let digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let valid = digits(month)
        && (digits(year) || (year.len() == 1 && year.bytes().all(|b| b.is_ascii_digit())));
    valid.then(|| Some((year.parse().ok()?, month.parse().ok()?)))?
}

#[cfg(test)]
mod tests;
