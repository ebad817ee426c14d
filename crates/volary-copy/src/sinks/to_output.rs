//! Writes files to an output, one after the other.

use crate::stream::{Meta, Sink};
use crate::told::failure::{Done, Failure, Why};
use crate::told::observer::Observer;
use std::io::Write;

/// An output as a target. It gets the contents of files only.
pub(crate) struct OutputSink<'a> {
    pub(crate) output: &'a mut (dyn Write + Send),
    /// The output's name, for messages.
    pub(crate) place: &'a str,
    pub(crate) observer: &'a dyn Observer,
}

impl Sink for OutputSink<'_> {
    fn check(&self) -> Done {
        self.observer.check()
    }

    fn enter(&mut self, _: &[u8], _: &Meta) -> Done {
        Ok(())
    }

    fn leave(&mut self) -> Done {
        Ok(())
    }

    fn file(&mut self, _: &[u8], _: &Meta, data: &[u8], more: bool) -> Done {
        self.data(data, more)
    }

    fn data(&mut self, data: &[u8], _: bool) -> Done {
        let written = self.output.write_all(data);
        written.map_err(|e| Failure::new(self.place, Why::Output(e)))
    }

    fn broken(&mut self) -> Done {
        Ok(())
    }

    fn xattr(&mut self, _: &[u8], _: &[u8]) {}

    fn link(&mut self, name: &[u8], _: &Meta) -> Done {
        Err(not_a_file(name))
    }

    fn symlink(&mut self, name: &[u8], _: &Meta, _: &[u8]) -> Done {
        Err(not_a_file(name))
    }

    fn special(&mut self, name: &[u8], _: &Meta) -> Done {
        Err(not_a_file(name))
    }
}

fn not_a_file(name: &[u8]) -> Failure {
    let place = volary_core::escape(name).to_string();
    Failure::words(place, "not a file; left out")
}
