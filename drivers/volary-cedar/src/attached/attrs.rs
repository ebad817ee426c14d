//! Attributes of nodes: as they are given out, and set.

use crate::attached::leaving::Leaving;
use crate::attached::steps::Steps;
use crate::change::file::File;
use crate::change::files::Files;
use crate::change::names::set_times;
use crate::change::nodes::{Nodes, node_id, uid_of};
use crate::change::sealing::Sealing;
use crate::name_table::entry::Head;
use volary_core::{Attr, Ctx, Entry, FileKind, Kind, NodeId, Result, SetAttr};

/// Attributes of nodes.
pub(crate) struct Attrs<'a> {
    files: &'a mut Files,
}

impl<'a> Attrs<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    pub(crate) fn attr(&self, head: &Head) -> Result<Attr> {
        let pages = match head.kind {
            FileKind::File if !head.is_away() => self.files.core.layout.pages_for(head.size),
            _ => 0,
        };
        Ok(head.attr(node_id(head.uid)?, pages, self.files.core.layout.page))
    }

    pub(crate) fn entry(&self, head: &Head) -> Result<Entry> {
        let attr = self.attr(head)?;
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    pub(crate) fn head(&mut self, node: NodeId) -> Result<Head> {
        Ok(Nodes::of(self.files).home(uid_of(node)?)?.1)
    }

    pub(crate) fn set(&mut self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let uid = uid_of(node)?;
        if *set == SetAttr::default() {
            let head = self.head(node)?;
            return self.attr(&head);
        }
        let done = self.try_set(cx, uid, set);
        let head = match (done, set.size) {
            (Err(_), Some(size)) if self.files.core.too_much => {
                Steps::of(self.files).grow_and(cx, uid, size, |files| {
                    Attrs::of(files).try_set(cx, uid, set)
                })?
            }
            (done, _) => done?,
        };
        Leaving::of(self.files).see_off(cx)?;
        if !self.files.is_open(uid) {
            Sealing::of(self.files).seal(uid, cx.now)?;
        }
        self.attr(&head)
    }

    fn try_set(&mut self, cx: &Ctx<'_>, uid: u64, set: &SetAttr) -> Result<Head> {
        self.files.change(cx.now, |c| {
            let (place, mut head) = Nodes::of(c).home(uid)?;
            if set.dos.is_some() {
                return Err(Kind::Unsupported.into());
            }
            if let Some(size) = set.size {
                head.check_newest(&place)?;
                File::of(c).resize(&mut head, size)?;
                head.mtime = cx.now;
            }
            head.mode = set.mode.map_or(head.mode, |m| m & 0o7777);
            head.owner = set.uid.unwrap_or(head.owner);
            head.group = set.gid.unwrap_or(head.group);
            set_times(&mut head, set, cx.now);
            head.touch(cx.now, false);
            Nodes::of(c).keep(&place, head.clone())?;
            Ok(head)
        })
    }
}
