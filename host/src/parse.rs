//! Values of sysfs and procfs files. Pure, but for [`parsed`], which reads the file first.

use std::cmp::Ordering;

use topology::fact::Fact;
use topology::pci::PciAddress;

use crate::root::{Root, last_name};

/// A file's value; one that is not as expected is `Unreadable` and says what was expected.
pub(crate) fn parsed<T>(
    root: &Root,
    path: &str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Fact<T> {
    checked(root.read(path), path, expected, parse)
}

/// A text read from `path`, parsed.
pub(crate) fn checked<T>(
    text: Fact<String>,
    path: &str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Fact<T> {
    match text {
        Fact::Known(text) => parse(&text).map_or_else(
            || Fact::Unreadable(unexpected(path, &text, expected)),
            Fact::Known,
        ),
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why),
    }
}

/// A value that says itself that there is none is `Absent`.
pub(crate) fn flatten<T>(fact: Fact<Option<T>>) -> Fact<T> {
    match fact {
        Fact::Known(value) => Fact::from(value),
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why),
    }
}

/// `read /sys/…: `garbage` is no …`, with the value cut to a readable length.
fn unexpected(path: &str, text: &str, expected: &str) -> String {
    let shown: String = text.chars().take(60).collect();
    format!("read {path}: `{}` is no {expected}", shown.escape_debug())
}

/// `0x15b3` or `15b3`.
pub(crate) fn hex<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
        .and_then(|value| T::try_from(value).ok())
}

/// The kernel's `numa_node`: −1 means that it does not know, which is `Absent`.
pub(crate) fn numa_node(root: &Root, path: &str) -> Fact<u32> {
    flatten(parsed(root, path, "NUMA node", |text| match text {
        "-1" => Some(None),
        digits => digits.parse().ok().map(Some),
    }))
}

/// Deepest PCI function of a sysfs path; auxiliary devices and subfunctions sit below their function.
pub(crate) fn deepest_function(path: &str) -> Option<PciAddress> {
    path.rsplit('/').find_map(|name| name.parse().ok())
}

/// The PCI function behind a `device` or `physfn` link.
pub(crate) fn function_of(root: &Root, link: &str) -> Fact<PciAddress> {
    flatten(crate::root::fact(root.resolve(link)).map(|path| deepest_function(&path)))
}

/// The PCI function that a link names, whether or not it exists.
pub(crate) fn function_named(root: &Root, link: &str) -> Option<PciAddress> {
    root.read_link_name(link)
        .known()
        .and_then(|name| last_name(name).parse().ok())
}

/// `mlx5_2` before `mlx5_10`: runs of digits compare as numbers.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    chunks(a).cmp(&chunks(b)).then_with(|| a.cmp(b))
}

/// Text and the number after it; a number without leading zeros compares by length, then by digits.
fn chunks(text: &str) -> Vec<(&str, usize, &str)> {
    let mut rest = text;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (word, tail) = rest.split_at(
            rest.find(|c: char| c.is_ascii_digit())
                .unwrap_or(rest.len()),
        );
        let (digits, tail) = tail.split_at(
            tail.find(|c: char| !c.is_ascii_digit())
                .unwrap_or(tail.len()),
        );
        let number = digits.trim_start_matches('0');
        found.push((word, number.len(), number));
        rest = tail;
    }
    found
}

/// Lines of the form `key: value`, without the white space around both.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests;
