//! Scripts on devices that fail.

use super::{Volume, apply, is_durable, of_script, perform, tag_of, with_ctx};
use crate::history::History;
use crate::op::Ops;
use std::sync::Arc;
use volary_core::{BlockDevice, Kind};

/// What a script met with.
#[derive(Debug)]
pub struct Endured {
    /// What it may rely on. What failed may have been done or not.
    pub history: History,
    /// The errors, in order; that of attaching or detaching too.
    pub errors: Vec<Kind>,
}

impl Volume {
    /// Runs a script on a device that may fail, on a volume that holds the preset;
    /// goes on after an error, as programs do, and detaches at the end.
    ///
    /// # Errors
    /// In words, if the preset cannot be.
    pub fn endure(&self, script: &Ops, dev: Arc<dyn BlockDevice>) -> Result<Endured, String> {
        let mut tree = self.preset_tree()?;
        let mut history = History {
            before: tree.clone(),
            after: Vec::new(),
            durable: Vec::new(),
            detached: None,
        };
        let mut errors = Vec::new();
        let fs = match self.attach_on(dev, false) {
            Ok(fs) => fs,
            Err(e) => {
                errors.push(e.kind());
                return Ok(Endured { history, errors });
            }
        };
        for (i, op) in script.0.iter().enumerate() {
            let (mut then, new) = (tree.clone(), of_script(i));
            if !apply(&mut then, op, new) {
                continue;
            }
            let tag = tag_of(&then, op).unwrap_or(new);
            let done = with_ctx(i, |cx| perform(&fs, cx, op, tag));
            if let Err(e) = &done {
                errors.push(e.kind());
                // It may be there, and what comes next may be there without it.
                history.after.push(then.clone());
                history.durable.push(false);
            } else {
                tree = then;
            }
            history.after.push(tree.clone());
            history.durable.push(done.is_ok() && is_durable(op));
        }
        let left = with_ctx(script.0.len(), |cx| fs.detach(cx));
        errors.extend(left.as_ref().err().map(volary_core::Error::kind));
        history.after.push(tree);
        history.durable.push(left.is_ok());
        Ok(Endured { history, errors })
    }
}
