//! Makes an empty volume (`newfs`).
//!
//! All is planned and checked before the first byte is written. The possible places of a superblock
//! are cleared first, and the superblock is written last. A make that was interrupted thus leaves
//! no volume rather than half of one.
//!
//! May use `disk`, `parameters`, `attached` for quotas, and `look` for a report of the new volume.

mod geometry;
mod plan;
mod request;
mod write;

pub(crate) use request::OPTIONS;

use crate::attached::operations::Attached;
use crate::look::info;
use plan::Plan;
use request::Request;
use std::sync::Arc;
use volary_core::{
    Attach, BlockDevice, Cancel, Cred, Ctx, Error, Fact, Kind, Make, QuotaOf, Result, SetQuota,
    Time,
};

/// Makes an empty volume over the whole device. It is flushed on return.
///
/// # Errors
/// `Invalid` for an option, or for a device that is too small or too large. Nothing is written in
/// these cases. `ReadOnly`; `Io`.
pub(crate) fn make(dev: &Arc<dyn BlockDevice>, is_ufs2: bool, how: &Make) -> Result<Vec<Fact>> {
    let geometry = dev.geometry();
    let request = Request::new(is_ufs2, geometry.size, how)?;
    let plan = Plan::new(geometry.size, request)?;
    if geometry.read_only {
        return Err(Error::note(Kind::ReadOnly, "the device is read-only"));
    }
    write::write(&**dev, &plan, how)?;
    if plan.request.quota {
        turn_quotas_on(dev.clone(), how.now)?;
    }
    info::info(&**dev)
}

fn turn_quotas_on(dev: Arc<dyn BlockDevice>, now: Time) -> Result<()> {
    let attached = Attached::new(dev, &Attach::default())?;
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now,
        cancel: &cancel,
    };
    for of in QuotaOf::ALL {
        attached.set_quota(&cx, of, &SetQuota::On)?;
    }
    attached.detach(&cx)
}
