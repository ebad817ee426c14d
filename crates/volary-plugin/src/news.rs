//! What a plug-in reports: changes by others, and messages for whoever runs the host.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use volary_core::{Change, ChangeSink, Finding, Severity, Watch};

/// The most messages that are kept.
const LINES_MAX: usize = 256;
/// How many bytes of a message are shown.
pub(crate) const LINE_MAX: usize = 1024;

/// Those who watch the volume, and messages that nobody has asked for yet.
#[derive(Default)]
pub(crate) struct News(Mutex<State>);

#[derive(Default)]
struct State {
    sinks: Vec<(u64, Arc<dyn ChangeSink>)>,
    last: u64,
    lines: VecDeque<Finding>,
    dropped: u64,
}

impl News {
    /// Tells all watchers of a change.
    pub(crate) fn changed(&self, change: Change) {
        let sinks = self.0.lock().sinks.clone();
        for (_, sink) in sinks {
            sink.changed(change);
        }
    }

    /// Keeps a message until it is taken.
    pub(crate) fn say(&self, severity: Severity, words: &[u8]) {
        let words = words.get(..LINE_MAX).unwrap_or(words);
        let mut state = self.0.lock();
        if state.lines.len() >= LINES_MAX {
            state.dropped += 1;
            return;
        }
        state.lines.push_back(Finding {
            code: "plug-in",
            severity,
            path: None,
            offset: None,
            message: volary_core::escape(words).to_string(),
            repair: String::new(),
        });
    }

    /// Takes the messages.
    pub(crate) fn take(&self) -> Vec<Finding> {
        let mut state = self.0.lock();
        let mut all: Vec<_> = state.lines.drain(..).collect();
        let dropped = std::mem::take(&mut state.dropped);
        drop(state);
        if let Some(last) = all.last_mut().filter(|_| dropped > 0) {
            last.message += &format!(" (and {dropped} lines that are not shown)");
        }
        all
    }

    /// Tells `sink` of changes from now on.
    pub(crate) fn watch(self: &Arc<Self>, sink: Arc<dyn ChangeSink>) -> Watch {
        let mut state = self.0.lock();
        state.last += 1;
        let number = state.last;
        state.sinks.push((number, sink));
        Watch(Box::new(Watching {
            news: Arc::clone(self),
            number,
        }))
    }
}

struct Watching {
    news: Arc<News>,
    number: u64,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut state = self.news.0.lock();
        state.sinks.retain(|(number, _)| *number != self.number);
    }
}
