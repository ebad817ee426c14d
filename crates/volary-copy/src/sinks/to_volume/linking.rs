//! Other names of nodes that were made before.

use super::VolumeSink;
use crate::nodes::links::{Link, Spot};
use crate::stream::Meta;
use crate::told::failure::Done;
use crate::told::losses::Loss;
use volary_core::{Caps, Error, Kind, NodeId};

impl VolumeSink<'_> {
    /// Makes another name for a node that was made before. Returns `None` if the node must be
    /// copied: for its first name, without hard links, or if it was not made.
    pub(super) fn linked(&mut self, name: &[u8], meta: &Meta) -> Option<Done> {
        let link = meta.link.filter(|link| link.again)?;
        if !self.caps.has(Caps::HARD_LINKS) {
            self.note(Loss::Links, name);
            return None;
        }
        let Some(Spot::Node(node)) = self.made.get(link.id) else {
            return None;
        };
        self.xattrs.clear();
        Some(self.make_link(name, meta, link, node))
    }

    fn make_link(&mut self, name: &[u8], meta: &Meta, link: Link, node: NodeId) -> Done {
        let (dir, dir_is_new) = self.dir();
        let make = |s: &Self| s.session.link(node, dir, name).map(drop);
        let again = |e: Error| {
            if e.kind() != Kind::Exists || dir_is_new {
                return Err(e);
            }
            let there = self.session.lookup(dir, name)?;
            if there.node == node || self.how.keeps(there.attr.mtime, meta.mtime) {
                return Ok(());
            }
            self.spare(&there, meta)?;
            self.session.replacing(dir, name, || make(self))
        };
        match make(self).or_else(again) {
            Ok(()) => {
                self.made.made(link, Spot::Node(node));
                self.count += 1;
                Ok(())
            }
            Err(e) => {
                // The next name becomes a new node.
                self.made.forget(link.id);
                Err(self.fail(name, e))
            }
        }
    }
}
