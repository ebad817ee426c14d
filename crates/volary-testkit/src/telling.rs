//! A volume whose changes by others come as news, when the test says so.

use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{Caps, Change, ChangeSink, Fs, Layer, Result, Watch};

/// A layer that adds [`Caps::WATCH`]; the volume below is changed by the test itself.
pub struct Telling {
    below: Fs,
    sink: Mutex<Option<Arc<dyn ChangeSink>>>,
}

impl Telling {
    /// Over a volume that does not watch by itself.
    pub fn new(below: Fs) -> Self {
        Self {
            below,
            sink: Mutex::default(),
        }
    }

    /// Tells who watches. Panics if nobody ever has.
    pub fn tell(&self, change: Change) {
        let sink = self.sink.lock().clone();
        sink.expect("one who watches").changed(change);
    }
}

impl Layer for Telling {
    fn below(&self) -> &Fs {
        &self.below
    }
    fn caps(&self) -> Caps {
        self.below.caps().with(Caps::WATCH)
    }
    fn watch(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        *self.sink.lock() = Some(sink);
        Ok(Watch(Box::new(())))
    }
}
