//! Prints each call.

use std::fmt::Write;
use std::sync::Arc;
use volary_core::{Fs, Layer, Op, Result};

/// Receives the lines of a [`Trace`], without line ends; called from many threads.
pub type TraceSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Prints each call in one line, once it has been answered: `lookup node=1 name="a b" -> ok`, `read
/// open=3 offset=0 len=512 -> Io`. Names are escaped, so that a line stays a line.
pub struct Trace {
    below: Fs,
    sink: TraceSink,
}

impl Trace {
    /// Puts the layer over `below`.
    pub fn new(below: Fs, sink: TraceSink) -> Self {
        Self { below, sink }
    }
}

impl Layer for Trace {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut line = describe(op);
        let answer = call();
        line.push_str(" -> ");
        // Writing to a string does not fail.
        let _ = match &answer {
            Ok(_) => write!(line, "ok"),
            Err(e) => write!(line, "{:?}", e.kind()),
        };
        (self.sink)(&line);
        answer
    }
}

fn describe(op: &Op<'_>) -> String {
    let mut line = op.call.name().to_owned();
    let mut add = |key: &str, value: Option<u64>| {
        if let Some(value) = value {
            let _ = write!(line, " {key}={value}");
        }
    };
    add("node", op.node.map(|node| node.ino.get()));
    add("open", op.open.map(|open| open.0));
    add("offset", op.offset);
    add("len", (op.len > 0).then_some(op.len));
    if let Some(name) = op.name {
        let _ = write!(line, " name={name:?}");
    }
    line
}
