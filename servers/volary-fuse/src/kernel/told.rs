//! [`Told`]: what the kernel is told of nodes, and how long it may cache that.

use crate::kernel::events::Progress;
use crate::kernel::nodes::Nodes;
use crate::kernel::types::{self, Wishes};
use crate::options::{Checks, MountOptions};
use fuser::{FileAttr, Generation, INodeNo};
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Attr, Caps, Entry, FileKind};

const DAY: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);

/// What the kernel is told of nodes.
pub(crate) struct Told {
    pub(crate) caps: Caps,
    pub(crate) wishes: Wishes,
    pub(crate) news: Arc<Progress>,
    nodes: Arc<Nodes>,
    remember: Remember,
}

/// How long the kernel may cache what it was told.
#[derive(Clone, Copy, Debug)]
struct Remember {
    attrs: Duration,
    /// Names of directories. The kernel knows each directory under one name only.
    dirs: Duration,
    /// Other names. If names ignore case, the kernel may know a node under several spellings.
    /// Renaming one leaves the others in its cache, so these must expire soon.
    names: Duration,
    /// The absence of a name.
    absent: Duration,
}

impl Told {
    /// Returns what the kernel is told of the nodes of a volume that is mounted with these options.
    pub(crate) fn new(
        nodes: &Arc<Nodes>,
        caps: Caps,
        wishes: Wishes,
        options: &MountOptions,
    ) -> Self {
        Self {
            nodes: Arc::clone(nodes),
            news: Arc::default(),
            remember: Remember::of(caps, wishes.sole, options),
            caps,
            wishes,
        }
    }

    /// Returns whether the volume tells where files have holes.
    pub(crate) fn knows_holes(&self) -> bool {
        self.caps.has(Caps::HOLES) && self.caps.has(Caps::EXTENTS)
    }

    /// Returns whether others change the volume, and nobody tells of that.
    pub(crate) fn hears_no_changes(&self) -> bool {
        !self.wishes.sole && !self.caps.has(Caps::WATCH)
    }

    /// Returns attributes in the kernel's form.
    pub(crate) fn attr(&self, attr: &Attr) -> FileAttr {
        types::file_attr(attr, self.nodes.number(attr.node))
    }

    /// Counts that the kernel is given a node. Returns what it is told of the node.
    pub(crate) fn give(&self, entry: &Entry) -> Given {
        self.nodes.remember(entry.node);
        Given {
            attr: self.attr(&entry.attr),
            generation: Generation(entry.node.generation.into()),
            names: self.name_lasts(entry.attr.kind),
            attrs: self.remember.attrs,
        }
    }

    /// Returns how long the kernel may cache a name of such a node.
    pub(crate) fn name_lasts(&self, kind: FileKind) -> Duration {
        match kind {
            FileKind::Dir => self.remember.dirs,
            _ => self.remember.names,
        }
    }

    /// Returns how long the kernel may cache attributes.
    pub(crate) fn attrs_last(&self) -> Duration {
        self.remember.attrs
    }

    /// Returns how long the kernel may cache the absence of a name.
    pub(crate) fn absence_lasts(&self) -> Duration {
        self.remember.absent
    }

    /// Returns whether others have changed the node's content since the kernel last opened it. The
    /// kernel then already knows the new size, and must drop the cached data.
    pub(crate) fn take_stale(&self, node: INodeNo) -> bool {
        let stale = self.nodes.take_stale(node.0);
        if stale {
            self.news.catch_up();
        }
        stale
    }
}

/// What the kernel is told of a node that it is given.
pub(crate) struct Given {
    pub(crate) attr: FileAttr,
    pub(crate) generation: Generation,
    pub(crate) names: Duration,
    pub(crate) attrs: Duration,
}

impl Remember {
    /// Returns how long the kernel may cache. If sessions check access and the mount serves several
    /// users, it may cache no names. It would otherwise pass through a known directory without
    /// asking whether the user may search it.
    fn of(caps: Caps, sole: bool, options: &MountOptions) -> Self {
        let all = Self::new(caps, sole, options.remember);
        if options.checks == Checks::Kernel || !options.allow_other {
            return all;
        }
        Self {
            dirs: Duration::ZERO,
            names: Duration::ZERO,
            absent: Duration::ZERO,
            ..all
        }
    }

    fn new(caps: Caps, sole: bool, asked: Option<Duration>) -> Self {
        let long = asked.unwrap_or(if sole { DAY } else { SECOND });
        let one_name_each = caps.has(Caps::CASE_SENSITIVE);
        Self {
            attrs: long,
            dirs: long,
            names: if one_name_each {
                long
            } else {
                long.min(SECOND)
            },
            absent: if one_name_each && sole {
                long
            } else {
                Duration::ZERO
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(bits: u32) -> Caps {
        Caps {
            bits,
            name_max: 255,
            size_max: 0,
            time_step: 1,
        }
    }

    #[test]
    fn absence_is_not_remembered_where_a_name_can_be_spelt_in_two_ways() {
        let remember = Remember::new(caps(Caps::CASE_KEEPING), true, None);
        assert_eq!(remember.absent, Duration::ZERO);
        assert_eq!(remember.names, SECOND);
        assert_eq!(remember.dirs, DAY);
        let remember = Remember::new(caps(Caps::CASE_SENSITIVE), true, None);
        assert_eq!((remember.absent, remember.names), (DAY, DAY));
    }

    #[test]
    fn what_others_can_change_is_remembered_for_a_second() {
        let remember = Remember::new(caps(Caps::CASE_SENSITIVE | Caps::WATCH), false, None);
        assert_eq!((remember.attrs, remember.absent), (SECOND, Duration::ZERO));
    }
}
