//! What there is to say of a volume that is on no device: one that a scheme opens.

use crate::device::DeviceArgs;
use crate::exit::{Done, Fail};
use crate::registry::registry;
use crate::volumes::{AttachArgs, Use, Volumes, usage};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use volary::{Caps, Fact, Session, Source};

/// Abilities that say what may be kept on a volume, in words.
const WORDS: [(u32, &str); 7] = [
    (Caps::WRITE, "changes"),
    (Caps::MODES, "owners and modes"),
    (Caps::SYMLINKS, "symlinks"),
    (Caps::HARD_LINKS, "hard links"),
    (Caps::DEVICES, "devices"),
    (Caps::XATTRS, "extended attributes"),
    (Caps::HOLES, "holes"),
];

/// Returns the facts of a scheme's volume; `None` for a source of another sort.
///
/// # Errors
/// In one line why it cannot be opened.
pub(super) fn facts(arg: &OsStr, how: &DeviceArgs) -> Done<Option<Vec<Fact>>> {
    let source = registry().source(arg.as_bytes());
    let source = source.map_err(|e| usage(arg, &e))?;
    let Source::Scheme { name, .. } = &source else {
        return Ok(None);
    };
    let facts = Volumes::run(&AttachArgs::from(how.clone()), |volumes| {
        let session = volumes.session(&source, Use::Look)?;
        of(name, &session).map_err(|e| Fail::at(&source, &e))
    });
    facts.map(Some)
}

fn of(scheme: &'static str, session: &Session) -> volary::Result<Vec<Fact>> {
    let (caps, room) = (session.caps(), session.statfs()?);
    let kept = WORDS.iter().filter(|(bit, _)| caps.has(*bit));
    let kept: Vec<_> = kept.map(|(_, word)| *word).collect();
    Ok(vec![
        Fact::word("format", scheme),
        Fact::number("size", room.size, "bytes"),
        Fact::number("free", room.free, "bytes"),
        Fact::number("block size", room.block_size.into(), "bytes"),
        Fact::number("longest name", caps.name_max.into(), "bytes"),
        Fact::maybe("keeps", (!kept.is_empty()).then(|| kept.join(", "))),
    ])
}
