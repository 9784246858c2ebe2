//! Reads what the agent wrote before. Called by [`crate::gather`].
//!
//! A file that is there and cannot be used says nothing about the devices: the last good copy counts, from this process
//! or, for the partition, from this boot's node file ([`crate::previous`]). Only a file that is not there starts anew.

use crds::node::Finding;
use host::root::Root;
use serde::de::DeserializeOwned;
use topology::node_file::NodeFile;

use crate::findings::FindingId;
use crate::gather::chain;
use crate::observed::{Before, Unusable};
use crate::planner::Memory;
use crate::settings::{
    ATTEMPTS_FILE, JOURNAL_FILE, MAINTENANCE_FILE, NODE_FILE, PARTITION_FILE, Settings,
};
use crate::store::{StoreError, modified, read_json, read_text};

/// Everything that was written before; `last` is what was good last in this process.
pub(crate) fn read(
    settings: &Settings,
    boot_id: &str,
    last: Option<&Before>,
    findings: &mut Vec<Finding>,
) -> Before {
    let root = &settings.root;
    let mut reader = Reader {
        root,
        unusable: Unusable::default(),
        findings,
    };
    let journal = reader.own(JOURNAL_FILE, last.map(|last| &last.memory.journal));
    let attempts = reader.own(ATTEMPTS_FILE, last.map(|last| &last.memory.attempts));
    let accepted = last.and_then(|last| last.memory.maintenance.as_ref());
    let memory = Memory {
        journal: journal.unwrap_or_default(),
        attempts: attempts.unwrap_or_default(),
        maintenance: reader.own(MAINTENANCE_FILE, accepted),
    };
    let last_file = last.and_then(|last| last.node_file.as_ref());
    Before {
        node_file: reader.node_file(boot_id, last_file),
        node_file_written: modified(root, NODE_FILE),
        kept: reader.own(PARTITION_FILE, last.and_then(|last| last.kept.as_ref())),
        cdi: reader.own(
            &settings.cdi_file(),
            last.and_then(|last| last.cdi.as_ref()),
        ),
        pair_files: root
            .list_dir(crate::cdi::PAIR_DIR)
            .unwrap_or_default()
            .into_iter()
            .collect(),
        memory,
        unusable: reader.unusable,
    }
}

struct Reader<'a> {
    root: &'a Root,
    unusable: Unusable,
    findings: &'a mut Vec<Finding>,
}

impl Reader<'_> {
    fn own<T: DeserializeOwned + Clone>(&mut self, path: &str, last: Option<&T>) -> Option<T> {
        read_json(self.root, path).unwrap_or_else(|error| {
            self.note(path, &error, last.is_some());
            last.cloned()
        })
    }

    /// The node file, if it is of this boot; one of another boot says nothing about this one.
    fn node_file(&mut self, boot_id: &str, last: Option<&NodeFile>) -> Option<NodeFile> {
        let last = last.filter(|file| file.boot_id == boot_id);
        let text = match read_text(self.root, NODE_FILE) {
            Ok(text) => text?,
            Err(error) => {
                self.note(NODE_FILE, &error, last.is_some());
                return last.cloned();
            }
        };
        match NodeFile::parse(&text) {
            Ok(file) => (file.boot_id == boot_id).then_some(file),
            // Of another release: its admissions are asked for again.
            Err(error) => {
                self.unusable.broken.insert(NODE_FILE.to_owned());
                self.find(NODE_FILE, &chain(&error), last.is_some());
                last.cloned()
            }
        }
    }

    fn note(&mut self, path: &str, error: &StoreError, has_last: bool) {
        let files = if error.is_of_content() {
            &mut self.unusable.broken
        } else {
            &mut self.unusable.unreadable
        };
        files.insert(path.to_owned());
        self.find(path, &error.chain(), has_last);
    }

    fn find(&mut self, path: &str, why: &str, has_last: bool) {
        let meanwhile = if has_last {
            "what it said last counts"
        } else {
            "it is made anew from what can be seen"
        };
        let message = format!("{why}; {meanwhile}");
        self.findings
            .push(FindingId::StateUnreadable.about(path, message));
    }
}
