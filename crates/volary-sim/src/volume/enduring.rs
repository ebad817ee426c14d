//! Scripts on devices that fail.

use super::{Volume, apply, is_durable, of_script, perform, tag_of, with_ctx};
use crate::script::history::History;
use crate::script::op::Ops;
use std::sync::Arc;
use volary_core::{BlockDevice, Kind};

/// The result of a script on such a device.
#[derive(Debug)]
pub struct Endured {
    /// The history that the script may rely on. A failed operation may have been done or not.
    pub history: History,
    /// The errors in order, including those of attaching and detaching.
    pub errors: Vec<Kind>,
}

impl Volume {
    /// Runs a script on a device that may fail, on a volume with the preset. Continues after an
    /// error, as programs do, and detaches at the end.
    ///
    /// # Errors
    /// A description, if the preset is impossible.
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
                // The operation may have been done, and later ones may be there without it.
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
