//! Copies what [`crate::machine`] and [`crate::facts`] read of a live machine into a fixture that can be shown around.
//!
//! Only the files named here are copied. GUIDs, MAC addresses, GIDs, UUIDs, the boot id and what names a host are masked
//! by [`mask`], addresses by [`address`]; of a configuration space's extended part only ACS and ATS are kept, not the serial number. Called by the agent's
//! `capture` command. The same machine gives the same bytes.

mod address;
mod devices;
mod mask;
mod network;
mod system;

use topology::fact::Fact;

use crate::root::{Root, RootError};
use mask::Masks;

/// A capture under way.
struct Capture<'a> {
    from: &'a Root,
    into: &'a Root,
    masks: Masks,
    left_out: Vec<String>,
}

/// Copies the machine below `from` into `into`. Returns what could not be read, one line each.
pub fn capture(from: &Root, into: &Root) -> Result<Vec<String>, RootError> {
    let mut capture = Capture {
        from,
        into,
        masks: Masks::default(),
        left_out: Vec::new(),
    };
    devices::copy(&mut capture)?;
    system::copy(&mut capture)?;
    network::copy(&mut capture)?;
    capture.left_out.sort();
    Ok(capture.left_out)
}

impl Capture<'_> {
    /// Copies a text file through `change`; what is absent stays absent.
    fn text(
        &mut self,
        path: &str,
        to: &str,
        change: impl FnOnce(&mut Masks, &str) -> String,
    ) -> Result<(), RootError> {
        match self.from.read(path) {
            Fact::Known(text) => {
                let text = change(&mut self.masks, &text);
                self.into.put(to, format!("{text}\n"))
            }
            Fact::Absent => Ok(()),
            Fact::Unreadable(why) => {
                self.left_out.push(why);
                Ok(())
            }
        }
    }

    /// Copies text files of one directory as they are.
    fn plain(&mut self, from: &str, to: &str, files: &[&str]) -> Result<(), RootError> {
        for file in files {
            self.text(
                &format!("{from}/{file}"),
                &format!("{to}/{file}"),
                |_, text| text.to_owned(),
            )?;
        }
        Ok(())
    }

    /// Names in a directory; none where it is absent.
    fn names(&mut self, path: &str) -> Vec<String> {
        match self.from.entries(path) {
            Fact::Known(names) => names,
            Fact::Absent => Vec::new(),
            Fact::Unreadable(why) => {
                self.left_out.push(why);
                Vec::new()
            }
        }
    }

    /// Where a link leads in the machine, if it leads anywhere.
    fn real(&mut self, path: &str) -> Option<String> {
        match crate::root::fact(self.from.resolve(path)) {
            Fact::Known(real) => Some(real),
            Fact::Absent => None,
            Fact::Unreadable(why) => {
                self.left_out.push(why);
                None
            }
        }
    }

    /// Copies a link if it leads somewhere.
    fn link(&mut self, path: &str, to: &str) -> Result<(), RootError> {
        let Some(real) = self.real(path) else {
            return Ok(());
        };
        let target = self.masks.path(&real);
        self.into.put_link(to, &target)
    }
}

#[cfg(test)]
mod tests;
