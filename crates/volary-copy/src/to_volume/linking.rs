//! Further names of nodes that were made before.

use super::VolumeSink;
use crate::failure::Done;
use crate::links::{Link, Spot};
use crate::losses::Loss;
use crate::stream::Meta;
use volary_core::{Caps, Error, Kind, NodeId};

impl VolumeSink<'_> {
    /// Makes a name for a node that was made before; `None` if the volume cannot, and it is to
    /// be copied again.
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
        Some(self.make_link(name, meta, (link, node)))
    }

    fn make_link(&mut self, name: &[u8], meta: &Meta, (link, node): (Link, NodeId)) -> Done {
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
            self.check_not_made(&there)?;
            self.session.replacing(dir, name, || make(self))
        };
        match make(self).or_else(again) {
            Ok(()) => {
                self.made.made(link, Spot::Node(node));
                self.count += 1;
                Ok(())
            }
            Err(e) => {
                // Its next name is copied anew.
                self.made.forget(link.id);
                Err(self.fail(name, e))
            }
        }
    }
}
