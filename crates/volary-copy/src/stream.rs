//! A tree on its way: what a source reads and a sink writes, in batches.
//!
//! A copy begins in one thread, with one batch that is filled and emptied in
//! turn: most end before a second thread would pay. One that goes on past
//! `ALONE` bytes gets a thread for the sink; the source then runs ahead of it by at
//! most `BATCHES` batches, so the memory that a copy takes does not grow with
//! what is copied.

mod batch;
mod outlet;
mod pump;

pub(crate) use batch::{Files, Meta, stops, zeros};
pub(crate) use outlet::{Budget, Outlet, Piece, Pieces};
pub(crate) use pump::{Sink, Tally};

use crate::failure::Done;
use crate::observer::Observer;
use batch::Batch;
use pump::{Pump, Skip};

/// Runs a copy: `source` in this thread, the sink in this one or, in time, in
/// one of its own, up to `budget`.
///
/// # Errors
/// What stopped it: of the sink, or else of the source. Failures of single
/// files are told to `observer`.
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
        // What was read is worth writing, whatever ended the reading.
        outlet.finish().and(read)
    })
}

#[cfg(test)]
mod tests;
