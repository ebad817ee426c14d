//! Damaged volumes: a driver may answer with errors, but must not panic or hang.

use crate::rng::Rng;
use crate::suite::within;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{
    Cancel, Cookie, Cred, Ctx, DirBuf, FileKind, Fs, Kind, Mode, Name, NodeId, Result, Time,
};

/// The number of damaged copies with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The volume could not be attached.
    pub refused: usize,
    /// The volume was attached, but part of it could not be read, or it had findings.
    pub noticed: usize,
    /// The volume was attached and read without an error.
    pub read: usize,
}

/// The greatest number of nodes that are read of a volume.
const NODES_MAX: usize = 500;

/// Damages copies of `good`, each in one way, attaches each copy and reads everything in it. A
/// driver must survive any wrong byte. The same `good` and `tries` give the same damage each time.
///
/// ```no_run
/// # use volary_core::{Fs, Result};
/// # fn survives(attach: fn(Vec<u8>) -> Result<Fs>) {
/// let good = std::fs::read("good.zip").unwrap();
/// volary_test::damage::survived(&good, 1000, attach);
/// # }
/// ```
///
/// # Panics
/// If a driver panics, or hangs for a minute, or refuses a volume with another error than `Corrupt`
/// and `Unsupported`. The message names the bytes that were changed.
pub fn survived(
    good: &[u8],
    tries: usize,
    attach: impl Fn(Vec<u8>) -> Result<Fs> + Send + Sync + 'static,
) -> Tally {
    let attach = Arc::new(attach);
    let mut rng = Rng::new(7);
    let mut tally = Tally::default();
    for _ in 0..tries {
        let (words, bytes) = damaged(good, &mut rng);
        let attach = attach.clone();
        let outcome = within(Duration::from_secs(60), move || {
            attach(bytes).map(|fs| walk(&fs))
        });
        match outcome.unwrap_or_else(|e| panic!("{words}: {e}")) {
            Ok(true) => tally.read += 1,
            Ok(false) => tally.noticed += 1,
            Err(e) if e == Kind::Corrupt || e == Kind::Unsupported => tally.refused += 1,
            Err(e) => panic!("{words}: refused as {:?}, not Corrupt: {e}", e.kind()),
        }
    }
    tally
}

/// Returns a description of the damage, and a damaged copy.
fn damaged(good: &[u8], rng: &mut Rng) -> (String, Vec<u8>) {
    let mut bytes = good.to_vec();
    let len = bytes.len().max(1) as u64;
    // Volumes are usually recognised by bytes near their beginning or end.
    let near = rng.below(len.min(1024));
    let at = match rng.below(4) {
        0 => near,
        1 => len - 1 - near,
        _ => rng.below(len),
    } as usize;
    if rng.below(8) == 0 {
        bytes.truncate(at);
        return (format!("cut to {at} bytes"), bytes);
    }
    // One byte or a field: with flipped bits, all zeros, all ones, or random.
    let width = [1, 1, 2, 4, 8][rng.below(5) as usize];
    let field = &mut bytes[at..good.len().min(at + width)];
    match rng.below(4) {
        0 => field.iter_mut().for_each(|b| *b ^= 1 << rng.below(8)),
        1 => field.fill(0),
        2 => field.fill(0xff),
        _ => field.fill_with(|| rng.below(256) as u8),
    }
    (format!("bytes at {at} made {field:02x?}"), bytes)
}

/// Reads up to [`NODES_MAX`] nodes. Returns whether there were no errors and no findings.
fn walk(fs: &Fs) -> bool {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now: Time::EPOCH,
        cancel: &cancel,
    };
    let mut todo = vec![fs.root()];
    let mut is_whole = fs.findings().is_empty();
    for _ in 0..NODES_MAX {
        let Some(node) = todo.pop() else { break };
        is_whole &= read_node(fs, &cx, node, &mut todo).is_ok();
    }
    let _ = fs.statfs(&cx);
    is_whole & fs.detach(&cx).is_ok()
}

fn read_node(fs: &Fs, cx: &Ctx<'_>, node: NodeId, todo: &mut Vec<NodeId>) -> Result<()> {
    for name in fs.listxattr(cx, node).unwrap_or_default() {
        fs.getxattr(cx, node, &name)?;
    }
    let attr = fs.getattr(cx, node)?;
    if attr.kind == FileKind::Symlink {
        return fs.readlink(cx, node).map(drop);
    }
    if attr.kind == FileKind::Dir {
        fs.parent(cx, node)?;
    }
    let open = fs.open(cx, node, Mode::Read)?;
    let done = match attr.kind {
        FileKind::Dir => list(
            fs,
            cx,
            node,
            |out, from| fs.readdir(cx, open, from, out),
            todo,
        ),
        FileKind::File => read_ends(|offset, buf| fs.read(cx, open, offset, buf), attr.size),
        _ => Ok(()),
    };
    fs.close(cx, open)?;
    done
}

/// Reads at the beginning, further on, at the end and past it.
fn read_ends(read: impl Fn(u64, &mut [u8]) -> Result<usize>, size: u64) -> Result<()> {
    let mut buf = vec![0; 20_000];
    for offset in [0, 20_000, size.saturating_sub(1), size, u64::MAX] {
        read(offset, &mut buf)?;
    }
    Ok(())
}

fn list(
    fs: &Fs,
    cx: &Ctx<'_>,
    dir: NodeId,
    readdir: impl Fn(&mut DirBuf, Cookie) -> Result<bool>,
    todo: &mut Vec<NodeId>,
) -> Result<()> {
    let mut from = Cookie::START;
    // Bounded, in case the cookies of a damaged directory form a loop.
    for _ in 0..NODES_MAX {
        let mut out = DirBuf::new(100, 1 << 16, true);
        let is_done = readdir(&mut out, from)?;
        for entry in out.iter() {
            fs.lookup(cx, dir, Name::new(entry.name)?)?;
            todo.push(entry.node);
            from = entry.next;
        }
        if is_done {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_core::Error;
    use volary_mem::{Mem, MemOptions};

    /// A format whose volumes are one byte, 7.
    fn attach(bytes: &[u8]) -> Result<Fs> {
        match bytes {
            [7] => Ok(Mem::attach(MemOptions::default(), Time::EPOCH).unwrap()),
            _ => Err(Error::corrupt("the byte", 0, "another", "7")),
        }
    }

    fn words_of(attach: impl Fn(Vec<u8>) -> Result<Fs> + Send + Sync + 'static) -> String {
        let told = within(Duration::from_secs(60), move || {
            survived(&[7], 50, attach);
        });
        told.unwrap_err()
    }

    #[test]
    fn what_came_of_it_is_told() {
        let tally = survived(&[7], 50, |bytes| attach(&bytes));
        assert!(tally.refused > 20 && tally.noticed == 0, "{tally:?}");
        assert_eq!(tally, survived(&[7], 50, |bytes| attach(&bytes)));
    }

    #[test]
    fn a_panic_and_an_error_of_another_kind_are_told_with_the_damage() {
        let panics = words_of(|bytes| attach(&[bytes[0]]));
        assert!(
            panics.contains("cut to 0 bytes") || panics.contains("index"),
            "{panics}"
        );
        let other = words_of(|bytes| attach(&bytes).map_err(|_| Kind::NotFound.into()));
        assert!(other.contains("refused as NotFound"), "{other}");
    }
}
