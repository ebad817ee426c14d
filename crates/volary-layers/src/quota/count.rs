//! Counts the nodes and bytes of a volume.

use super::used::{Used, bytes_of};
use std::collections::HashSet;
use volary_core::{
    Attr, Cancel, Cookie, Cred, Ctx, DirBuf, FileKind, Fs, Mode, NodeId, Result, Time,
};

/// Counts every node but the root, each once.
///
/// Memory grows with the directories still to be read and the files with several names.
///
/// # Errors
/// Those of reading the volume.
pub(super) fn count(fs: &Fs) -> Result<Used> {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now: Time::EPOCH,
        cancel: &cancel,
    };
    let mut used = Used::default();
    let mut linked = HashSet::new();
    let mut dirs = vec![fs.root()];
    while let Some(dir) = dirs.pop() {
        each_entry(fs, &cx, dir, |attr| {
            if attr.kind == FileKind::Dir {
                dirs.push(attr.node);
            } else if attr.nlink > 1 && !linked.insert(attr.node) {
                return;
            }
            used.add(attr.uid, bytes_of(attr), 1);
        })?;
    }
    Ok(used)
}

fn each_entry(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, mut each: impl FnMut(&Attr)) -> Result<()> {
    let open = fs.open(cx, dir, Mode::Read)?;
    let mut list = || {
        let mut at = Cookie::START;
        loop {
            let mut out = DirBuf::new(256, 32 << 10, true);
            let end = fs.readdir(cx, open, at, &mut out)?;
            for entry in out.iter() {
                match entry.attr {
                    Some(attr) => each(&attr),
                    None => each(&fs.getattr(cx, entry.node)?),
                }
            }
            at = out.last_cookie().unwrap_or(at);
            if end || out.is_empty() {
                return Ok(());
            }
            cx.check_cancel()?;
        }
    };
    let listed = list();
    let closed = fs.close(cx, open);
    listed.and(closed)
}
