//! Texts that are damaged here and there, for property tests of whoever reads them.

use proptest::prelude::*;

/// What stands in files that nobody meant: numbers at the end of their range, other kinds of value, ends of things.
const ODD: [&str; 22] = [
    "",
    "0",
    "-1",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999999999",
    "1e308",
    "NaN",
    "null",
    "~",
    "true",
    "[]",
    "{}",
    "\"",
    ":",
    "\n",
    "\t- ",
    "\u{0}",
    "é\u{202e}",
    "../../etc",
    "0000:ff:1f.7",
    "<",
];

/// One damage: where, over how many bytes, and what stands there instead.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    at: prop::sample::Index,
    length: usize,
    instead: Instead,
}

#[derive(Clone, Debug)]
enum Instead {
    Odd(&'static str),
    /// Another part of the same text.
    Copy(prop::sample::Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let odd = proptest::sample::select(ODD.to_vec()).prop_map(Instead::Odd);
    let copy = any::<prop::sample::Index>();
    let copy = (copy, 0..80_usize).prop_map(|(from, length)| Instead::Copy(from, length));
    let length = prop_oneof![3 => 0..12_usize, 1 => 0..400_usize];
    (any::<prop::sample::Index>(), length, prop_oneof![odd, copy]).prop_map(
        |(at, length, instead)| Damage {
            at,
            length,
            instead,
        },
    )
}

/// One to three damages.
pub(crate) fn damages() -> impl Strategy<Value = Vec<Damage>> {
    proptest::collection::vec(damage(), 1..4)
}

/// The text with its damages. They hit whole values often: the next colon, equals sign or quote before the place is where
/// one begins.
pub(crate) fn apply(text: &str, damages: &[Damage]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        let mut at = damage.at.index(bytes.len());
        if let Some(back) = bytes[..at].iter().rev().position(|b| b":=\"".contains(b)) {
            at -= back.min(8);
        }
        let end = (at + damage.length).min(bytes.len());
        let new = match &damage.instead {
            Instead::Odd(odd) => odd.as_bytes().to_vec(),
            Instead::Copy(from, length) => {
                let from = from.index(bytes.len());
                bytes[from..(from + length).min(bytes.len())].to_vec()
            }
        };
        bytes.splice(at..end, new);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
