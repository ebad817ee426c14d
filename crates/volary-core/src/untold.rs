//! [`Untold`]: findings of a driver that nobody has asked for yet.

use crate::Finding;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most findings that are kept.
const MOST: usize = 1000;

/// Findings kept until [`findings`](crate::FileSystem::findings) is called.
#[derive(Debug, Default)]
pub struct Untold {
    waiting: Vec<Finding>,
    any: Arc<AtomicBool>,
}

impl Untold {
    /// Returns a flag that tells, at any time and without a lock, whether a finding is kept.
    pub fn any(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.any)
    }

    /// Returns whether further findings would be dropped.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= MOST
    }

    /// Keeps a finding, unless 1000 wait already.
    pub fn add(&mut self, finding: Finding) {
        if !self.is_full() {
            self.waiting.push(finding);
            self.any.store(true, Ordering::Release);
        }
    }

    /// Takes the findings, in the order in which they were added.
    pub fn take(&mut self) -> Vec<Finding> {
        self.any.store(false, Ordering::Release);
        std::mem::take(&mut self.waiting)
    }
}
