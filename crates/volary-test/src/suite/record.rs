//! The last operations that a case called, for the report of a failure.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use volary_core::{Call, Ctx, Fs, Kind, Layer, NodeId, Op, OpenId, Result, Whole, escape};

/// The number of operations in the report of a failure.
const KEPT: usize = 30;

/// The last operations of a case, oldest first.
#[derive(Default)]
pub(crate) struct Record(Mutex<VecDeque<Line>>);

struct Line {
    call: Call,
    node: Option<NodeId>,
    open: Option<OpenId>,
    name: Option<Vec<u8>>,
    offset: Option<u64>,
    len: u64,
    outcome: Option<Kind>,
}

impl Record {
    fn note(&self, op: &Op<'_>, outcome: Option<Kind>) {
        let line = Line {
            call: op.call,
            node: op.node,
            open: op.open,
            name: op.name.map(|name| name.as_bytes().to_vec()),
            offset: op.offset,
            len: op.len,
            outcome,
        };
        let mut lines = self.0.lock();
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Returns the last operation that is one of `calls`.
    pub(crate) fn last_of(&self, calls: &[Call]) -> Option<Call> {
        let lines = self.0.lock();
        let mut last = lines.iter().rev().map(|line| line.call);
        last.find(|call| calls.contains(call))
    }

    /// Returns the operations, one per line.
    pub(crate) fn text(&self) -> Vec<String> {
        self.0.lock().iter().map(Line::text).collect()
    }
}

impl Line {
    fn text(&self) -> String {
        let mut text = self.call.name().to_owned();
        let mut add = |part: std::fmt::Arguments<'_>| {
            let _ = write!(text, " {part}");
        };
        if let Some(node) = self.node {
            add(format_args!("node {}.{}", node.ino, node.generation));
        }
        if let Some(open) = self.open {
            add(format_args!("open {}", open.0));
        }
        if let Some(name) = &self.name {
            add(format_args!("'{}'", escape(name)));
        }
        if let Some(offset) = self.offset {
            add(format_args!("at {offset}"));
        }
        if self.len > 0 {
            add(format_args!("{} bytes", self.len));
        }
        match self.outcome {
            None => add(format_args!("-> done")),
            Some(kind) => add(format_args!("-> {kind:?}")),
        }
        text
    }
}

/// A layer that fills a [`Record`].
pub(crate) struct Recorder {
    below: Fs,
    record: Arc<Record>,
}

impl Recorder {
    pub(crate) fn over(below: Fs, record: &Arc<Record>) -> Fs {
        let record = Arc::clone(record);
        Arc::new(Self { below, record })
    }
}

impl Layer for Recorder {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let result = call();
        self.record
            .note(op, result.as_ref().err().map(volary_core::Error::kind));
        result
    }

    fn read_whole(&self, cx: &Ctx<'_>, files: &mut [Whole<'_>]) -> bool {
        self.below.read_whole(cx, files)
    }
}
