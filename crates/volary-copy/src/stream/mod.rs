//! The stream of nodes that a source reads and a sink writes, in batches. May use `told` and `nodes`.
//!
//! A copy begins in one thread, with one batch that is filled and emptied in turn: most copies end
//! before a second thread would pay. After `ALONE` bytes the sink gets its own thread. The source
//! then runs ahead of it by at most `BATCHES` batches, which bounds the memory of a copy.

mod batch;
mod outlet;
mod pump;

pub(crate) use batch::{Files, Meta, stops, zeros};
pub(crate) use outlet::{Budget, Outlet, Piece, Pieces};
pub(crate) use pump::{Sink, Tally};

use crate::told::failure::Done;
use crate::told::observer::Observer;
use batch::Batch;
use pump::{Pump, Skip};

/// Runs a copy within `budget`: `source` in this thread, and the sink first in this one and later
/// perhaps in its own.
///
/// # Errors
/// The failure that ended the copy: the sink's, or else the source's. Failures of single files are
/// reported to `observer`.
pub(crate) fn run(
    source: impl FnOnce(&mut Outlet<'_, '_>) -> Done,
    sink: &mut dyn Sink,
    budget: &mut Option<Budget>,
    tally: &mut Tally,
    observer: &dyn Observer,
) -> Done {
    let pump = Pump {
        sink,
        tally,
        observer,
        skip: Skip::No,
        host_copied: 0,
    };
    std::thread::scope(|scope| {
        let mut outlet = Outlet {
            scope,
            batch: Batch::new(),
            sink: outlet::Writer::Here(pump, 0),
            budget,
            takes_ranges: true,
            observer,
        };
        let read = source(&mut outlet);
        // The batch is worth writing, even if reading has failed.
        outlet.finish().and(read)
    })
}

#[cfg(test)]
mod tests;
