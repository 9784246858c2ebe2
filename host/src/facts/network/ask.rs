//! Where the answers of the running kernel come from: from a tool, where this process shares the network namespace of the
//! machine below the root; else from a file of a recorded machine ([`RECORDED`]); else they are unreadable.

use std::path::Path;

use serde::de::DeserializeOwned;
use topology::fact::Fact;

use crate::facts::{RECORDED, Sourced};
use crate::program::answer;
use crate::root::{Root, fact};

/// Whether the programs of this process see the network of the machine below `root`: the namespace of its first process is
/// ours. Where `/` does not tell, it is our own machine.
#[must_use]
pub fn is_live(root: &Root) -> bool {
    let own = std::fs::read_link("/proc/thread-self/ns/net");
    match root.link_target("/proc/1/ns/net") {
        Ok(of_root) => own.is_ok_and(|own| own.to_string_lossy() == of_root),
        Err(_) => root.path() == Path::new("/"),
    }
}

/// A question to a tool. Names of interfaces are arguments of their own, so that none is taken for anything else.
pub(crate) struct Question<'a> {
    pub(super) program: &'static str,
    pub(super) arguments: Vec<&'a str>,
    /// Name of the file with the recorded answer.
    pub(crate) recorded: String,
}

/// What a recorded answer says where the tool said that the kernel or the driver has no such thing.
pub(crate) const UNSUPPORTED: &str = "not supported";

impl Question<'_> {
    /// The answer, parsed; a tool that says "not supported" has found nothing.
    pub(super) fn ask<T: DeserializeOwned>(&self, root: &Root) -> Sourced<T> {
        let what = format!("{} {}", self.program, self.arguments.join(" "));
        if is_live(root) {
            return Sourced::new(what.clone(), parse(self.live(), &what));
        }
        let path = format!("{RECORDED}/{}", self.recorded);
        let text = match root.text(&path) {
            Err(error) if error.is_not_found() => Fact::Unreadable(format!(
                "this process is not in the network namespace of the machine, and `{what}` is not recorded in {path}"
            )),
            Ok(text) if text.trim() == UNSUPPORTED => Fact::Absent,
            result => fact(result),
        };
        Sourced::new(path.clone(), parse(text, &path))
    }

    fn live(&self) -> Fact<String> {
        match answer(self.program, &self.arguments) {
            Ok(text) => Fact::Known(text),
            Err(error) if error.is_unsupported() => Fact::Absent,
            Err(error) => Fact::Unreadable(error.chain()),
        }
    }

    /// What a capture of the machine below `root` records: the tool's answer, or what was recorded before; `Absent` where
    /// neither is to be had.
    pub(crate) fn to_record(&self, root: &Root) -> Fact<String> {
        if !is_live(root) {
            return root.read(&format!("{RECORDED}/{}", self.recorded));
        }
        match self.live() {
            Fact::Absent => Fact::Known(UNSUPPORTED.to_owned()),
            found => found,
        }
    }
}

/// An empty answer is one of nothing: some versions of the tools print no brackets then.
fn parse<T: DeserializeOwned>(text: Fact<String>, source: &str) -> Fact<T> {
    match text {
        Fact::Known(text) if text.trim().is_empty() => match serde_json::from_str("[]") {
            Ok(value) => Fact::Known(value),
            Err(_) => Fact::Absent,
        },
        Fact::Known(text) => match serde_json::from_str(&text) {
            Ok(value) => Fact::Known(value),
            Err(error) => Fact::Unreadable(format!("read {source}: {error}")),
        },
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(why) => Fact::Unreadable(why),
    }
}
