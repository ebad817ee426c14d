//! Listing a directory. Damaged chunks are skipped, and reported after all other entries.

use crate::directory::dir::{Damage, Dir, Entry};
use volary_core::{Cookie, Error, Kind, Result};

/// Bit of a cookie: a damaged chunk was skipped before it. The bit is free because entries begin at
/// multiples of 4.
const DAMAGED: u64 = 1;

/// What the caller did with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took {
    Listed,
    Passed,
    /// The caller has no room for it.
    Full,
}

/// Passes the entries from a cookie on to `each`, with the cookie of what follows. Returns true at
/// the end of the directory, and false if `each` was full and should ask again.
///
/// # Errors
/// `Invalid` for an invalid cookie; those of `each`. `Corrupt` or `Io` at the end, if a chunk was
/// damaged or could not be read, or earlier after 64 such chunks.
pub(crate) fn list(
    dir: &mut Dir<'_>,
    from: Cookie,
    each: &mut dyn FnMut(&Entry<'_>, Cookie) -> Result<Took>,
) -> Result<bool> {
    let at = from.0 & !DAMAGED;
    if at > dir.inode.size || !at.is_multiple_of(4) {
        let words = format!("no entry of the directory begins at {at}");
        return Err(Error::note(Kind::Invalid, words));
    }
    let (mut damage, mut any) = (Damage::default(), false);
    let was_damaged = from.0 & DAMAGED;
    // If the entry that began there has been removed, the listing goes on with the next one.
    let mut at = match dir.border(at) {
        Ok(border) => border,
        Err(e) => damage.pass(e).map(|()| Dir::next_chunk(at))?,
    };
    loop {
        match dir.entry(at) {
            Ok(None) => break,
            Ok(Some(entry)) => {
                at = entry.end;
                let flag = was_damaged | u64::from(damage.first.is_some());
                match each(&entry, Cookie(at | flag))? {
                    Took::Full => return Ok(false),
                    took => any |= took == Took::Listed,
                }
            }
            Err(e) => match damage.pass(e) {
                Ok(()) => at = Dir::next_chunk(at),
                Err(_) if any => return Ok(false),
                Err(e) => return Err(e),
            },
        }
    }
    match (damage.first, was_damaged) {
        (None, 0) => Ok(true),
        _ if any => Ok(false),
        (Some(e), _) => Err(e),
        (None, _) => {
            let words = "a part of the directory is damaged: what stands there is not listed";
            Err(Error::note(Kind::Corrupt, words))
        }
    }
}
