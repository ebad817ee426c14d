//! The exit code of a command that does several things.

use crate::exit::{Done, Exit};

/// Keeps the exit code of a command that goes on after a failure.
#[derive(Debug, Default)]
pub(crate) struct Tally(Option<Exit>);

impl Tally {
    /// Reports a failure and remembers it.
    ///
    /// # Errors
    /// Where going on makes no sense: the user stopped it, or nobody reads.
    pub(crate) fn take(&mut self, done: Done) -> Done {
        match done {
            Err(fail) if matches!(fail.exit, Exit::Stopped | Exit::Done) => Err(fail),
            Err(fail) => {
                fail.report();
                self.0.get_or_insert(fail.exit);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the code of the first failure.
    pub(crate) fn exit(&self) -> Exit {
        self.0.unwrap_or(Exit::Done)
    }
}
