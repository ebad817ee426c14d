//! Files that the driver reads many at the same time.

use crate::budget::Buf;
use crate::ordinary::Fetched;
use crate::run::{Part, is_same};
use volary_core::{Caps, Whole};

/// A file, and room for it.
pub(crate) type Roomy = (u32, Buf);

/// Whether the driver gains from it.
pub(crate) fn gains(part: &Part<'_>) -> bool {
    part.source.session.read_whole(&mut [])
}

/// Reads files into their buffers, which are as long as the files, or have one byte for one that says
/// that it is empty. Returns, in the same order, those that were read; of those that were not, or are
/// not what the walk saw, the room.
pub(crate) fn read(part: &Part<'_>, files: Vec<Roomy>) -> Vec<Result<Fetched, Roomy>> {
    let session = &part.source.session;
    let has_holes = session.caps().has(Caps::EXTENTS);
    let mut wholes = Vec::with_capacity(files.len());
    let mut all = Vec::with_capacity(files.len());
    for (file, mut buf) in files {
        let listed = part.list.files.get(file as usize);
        // Where there are holes is asked through an open.
        let whole = listed.filter(|listed| !has_holes || listed.attr.allocated >= listed.attr.size);
        let len = buf.bytes.len();
        wholes.extend(whole.map(|listed| Whole {
            attr: &listed.attr,
            bytes: std::mem::take(&mut buf.bytes),
            read: None,
        }));
        all.push((file, buf, whole.map(|_| len)));
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
        // What the driver did not get back is made anew.
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

/// Whether all of the file was read, and it is what the walk saw.
fn is_good(part: &Part<'_>, whole: &Whole<'_>) -> bool {
    whole.read.is_some_and(|(read, now)| {
        let has_stayed = !part.source.is_live || is_same(&now, whole.attr);
        let is_all = read as u64 == whole.attr.size && read <= whole.bytes.len();
        has_stayed && is_all
    })
}
