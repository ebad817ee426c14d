//! The state that all of a run shares, and that of a part of it.

use crate::interface::delivery::{Consumer, Way, Why};
use crate::interface::options::{Method, Options, Shares};
use crate::interface::source::Source;
use crate::interface::summary::Tally;
use crate::listing::list::List;
use crate::listing::packed::Listed;
use crate::listing::plan::Merge;
use crate::state::budget::{Budget, Meter};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a device is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuned {
    /// The largest gap between two fragments that is read along with both.
    pub(crate) gap: u64,
    /// The largest request, in bytes.
    pub(crate) request: u64,
    /// The number of requests at a time.
    pub(crate) depth: usize,
    /// Whether the device has to seek.
    pub(crate) moves: bool,
}

/// The state that all of a run shares.
pub(crate) struct Run<'a> {
    pub(crate) options: &'a Options,
    pub(crate) shares: Shares,
    pub(crate) consumer: &'a dyn Consumer,
    pub(crate) reads: Arc<Budget>,
    pub(crate) assembly: Arc<Budget>,
    pub(crate) scratch: Arc<Budget>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) tally: Tally,
    pub(crate) stop: AtomicBool,
}

impl Run<'_> {
    /// Stops the run: nothing more is delivered.
    pub(crate) fn end(&self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.reads.close();
        self.assembly.close();
        self.scratch.close();
    }

    /// Breaks if the run has ended.
    pub(crate) fn check(&self) -> ControlFlow<()> {
        match self.stop.load(std::sync::atomic::Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// A listed part of a source.
pub(crate) struct Part<'a> {
    pub(crate) run: &'a Run<'a>,
    pub(crate) number: usize,
    pub(crate) source: &'a Source,
    pub(crate) list: &'a List,
    pub(crate) tuned: Tuned,
}

impl Part<'_> {
    /// Returns whether a file is assembled from fragments and holes.
    pub(crate) fn is_copied(&self, file: u32) -> bool {
        let head = self.list.files.head(file as usize);
        head.is_some_and(|head| head.fragments != 1 || head.has_holes)
    }

    /// Returns how fragments are merged into requests.
    pub(crate) fn merge(&self) -> Merge {
        Merge {
            gap: (self.run.options.method == Method::DaftM).then_some(self.tuned.gap),
            request: self.tuned.request,
        }
    }

    /// Returns the way of a file that a sweep read.
    pub(crate) fn way(&self, file: u32) -> Way {
        match self.is_copied(file) || self.run.options.shuffle.is_some() {
            true => Way::Assembled,
            false => Way::Direct,
        }
    }

    /// Returns whether a live file may differ from what the walk saw.
    pub(crate) fn has_changed(&self, file: &Listed) -> bool {
        if !self.source.is_live {
            return false;
        }
        let now = self.source.session.getattr(file.attr.node);
        !now.is_ok_and(|now| is_same(&now, &file.attr))
    }
}

/// Returns whether two sets of attributes show no change of the node's content.
pub(crate) fn is_same(a: &volary_core::Attr, b: &volary_core::Attr) -> bool {
    (a.node, a.size, a.mtime, a.ctime, a.change) == (b.node, b.size, b.mtime, b.ctime, b.change)
}

/// A file to be read again, and the reason.
pub(crate) type Again = (u32, Why);
