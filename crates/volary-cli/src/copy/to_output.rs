//! Writes files to standard output, one after the other.

use super::stream::{Meta, Sink};
use crate::exit::{Done, Exit, Fail};
use crate::out::Raw;
use std::io::Write;

/// Standard output as a target: of what is copied only the content of files
/// arrives there.
pub(crate) struct OutputSink;

impl Sink for OutputSink {
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
        Ok(Raw.write_all(data)?)
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

fn not_a_file(name: &[u8]) -> Fail {
    let line = format!("{}: not a file; left out", volary::escape(name));
    Fail::new(Exit::Failed, line)
}
