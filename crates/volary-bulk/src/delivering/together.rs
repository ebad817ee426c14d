//! Small files that the driver reads in batches.

use crate::delivering::ordinary::Fetched;
use crate::state::budget::Buf;
use crate::state::part::{Part, is_same};
use volary_core::{Attr, Caps, Whole};

/// A listed file, and the buffer to read it into.
pub(crate) type ToRead = (u32, Buf);

/// Returns whether the driver can read in batches.
pub(crate) fn has_batches(part: &Part<'_>) -> bool {
    part.source.session.read_whole(&mut [])
}

/// Reads files into their buffers. A buffer is as long as its file; for an empty file it has one
/// byte, which shows whether the file has grown. Returns results in the same order: the content, or
/// the file and its buffer if it could not be read or has changed since the walk.
pub(crate) fn read(part: &Part<'_>, files: Vec<ToRead>) -> Vec<Result<Fetched, ToRead>> {
    let session = &part.source.session;
    let has_holes = session.caps().has(Caps::EXTENTS);
    let attr = |(file, _): &ToRead| {
        let attr = part.list.files.get(*file as usize)?.attr;
        // A file with holes is left out: its holes can only be asked for through an open.
        (!has_holes || attr.allocated >= attr.size).then_some(attr)
    };
    let attrs: Vec<Option<Attr>> = files.iter().map(attr).collect();
    let mut wholes = Vec::with_capacity(files.len());
    let mut all = Vec::with_capacity(files.len());
    for ((file, mut buf), attr) in files.into_iter().zip(&attrs) {
        let len = buf.bytes.len();
        wholes.extend(attr.as_ref().map(|attr| Whole {
            attr,
            bytes: std::mem::take(&mut buf.bytes),
            read: None,
        }));
        all.push((file, buf, attr.map(|_| len)));
    }
    session.read_whole(&mut wholes);
    let mut wholes = wholes.into_iter();
    let ended = all.into_iter().map(|(file, mut buf, len)| {
        let whole = len.and_then(|len| Some((len, wholes.next()?)));
        let Some((len, whole)) = whole else {
            return Err((file, buf));
        };
        let is_good = is_good(part, &whole);
        buf.bytes = whole.bytes;
        // A buffer that the driver could not give back is allocated anew.
        buf.bytes.resize(len, 0);
        if !is_good {
            return Err((file, buf));
        }
        buf.bytes
            .truncate(usize::try_from(whole.attr.size).unwrap_or(len));
        Ok(Fetched { buf, data: None })
    });
    ended.collect()
}

/// Returns whether the whole file was read, and its attributes are still those that the walk saw.
fn is_good(part: &Part<'_>, whole: &Whole<'_>) -> bool {
    whole.read.is_some_and(|(read, now)| {
        let has_stayed = !part.source.is_live || is_same(&now, whole.attr);
        let is_all = read as u64 == whole.attr.size && read <= whole.bytes.len();
        has_stayed && is_all
    })
}
