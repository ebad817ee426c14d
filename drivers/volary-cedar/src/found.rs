//! What is found wrong in passing, until somebody asks for it.

use crate::core::Core;
use crate::nodes::is_named;
use std::collections::BTreeSet;
use volary_core::{Finding, Severity, Untold};

/// Most files that are known to be told of.
const MOST: usize = 1000;
/// Longest way from a file to the root that is told.
const DEPTH: usize = 256;

/// Findings that nobody has been told of.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) untold: Untold,
    /// Files whose leaders were told of.
    told: BTreeSet<u64>,
}

impl Core {
    /// Has it told that the leader of a file, in `page`, does not agree with the name table:
    /// once for each file and attachment.
    pub(crate) fn leader_differs(&mut self, uid: u64, page: u32, mended: bool) {
        if self.found.told.len() >= MOST || !self.found.told.insert(uid) {
            return;
        }
        let repair = match mended {
            true => "it is written anew",
            false => "fsck -y writes it anew",
        };
        let finding = Finding {
            code: "leader",
            severity: Severity::Damage,
            path: self.path_of(uid),
            offset: Some(self.layout.offset(page)),
            message: crate::leader::DIFFERS.into(),
            repair: repair.into(),
        };
        self.found.untold.add(finding);
    }

    /// The path of a node, as far as the name table tells.
    fn path_of(&mut self, uid: u64) -> Option<Vec<u8>> {
        let (mut parts, mut at) = (Vec::new(), uid);
        for _ in 0..DEPTH {
            if at == crate::entry::ROOT_UID {
                parts.reverse();
                return Some([b"/".to_vec(), parts.join(&b'/')].concat());
            }
            let (place, head) = self.home(at).ok()?;
            if head.is_older(&place) || !is_named(&place) {
                return None;
            }
            parts.push(place.name);
            at = place.dir;
        }
        None
    }
}
