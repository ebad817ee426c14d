//! A node as the commands print it, and the reading of directories.

mod descent;

pub(crate) use descent::{Descent, descend};

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::volumes::At;
use serde::Serialize;
use std::collections::HashSet;
pub(crate) use volary::Row;
use volary::{Attr, FileKind, Listing, NodeId, PATH_MAX, Session, escape};

/// Bytes that the entries of one directory may take here.
pub(crate) const LISTING_MAX: usize = Listing::MAX;

/// Returns the entries of a directory, in the order in which they lie.
///
/// # Errors
/// In one line.
pub(crate) fn read_dir(session: &Session, dir: &Attr, at: &At) -> Done<Vec<Row>> {
    entries(session, dir).map_err(|e| Fail::at(at, &e))
}

/// Reads a directory as `read_dir` does, and gives the error unchanged.
///
/// # Errors
/// As `open` and `readdir` of [`Session`]. As `getattr`, for the first node that it fails for.
pub(crate) fn entries(session: &Session, dir: &Attr) -> volary::Result<Vec<Row>> {
    let listing = Listing::read(session, dir.node, LISTING_MAX);
    listing.end?;
    match listing.unreadable.into_iter().next() {
        Some((_, e)) => Err(e),
        None => Ok(listing.rows),
    }
}

/// Reads what can be read of a directory, in the order in which it lies. The rest is told to `failed`.
///
/// # Errors
/// Of `failed`.
fn readable(
    session: &Session,
    dir: &Attr,
    at: &At,
    max: usize,
    failed: &mut dyn FnMut(Fail) -> Done,
) -> Done<Listing> {
    let mut listing = Listing::read(session, dir.node, max);
    for (name, e) in std::mem::take(&mut listing.unreadable) {
        let fail = Fail::at(at.join(&name), &e);
        let exit = match fail.exit {
            Exit::Damaged => Exit::Failed,
            exit => exit,
        };
        failed(Fail { exit, ..fail })?;
    }
    if let Err(e) = std::mem::replace(&mut listing.end, Ok(())) {
        failed(Fail::at(at, &e))?;
    }
    Ok(listing)
}

/// Sorts entries by name as bytes.
pub(crate) fn sort(rows: &mut [Row]) {
    rows.sort_unstable_by(|a, b| a.name.cmp(&b.name));
}

/// The directories that a walk has been in. A damaged volume can have one in
/// two places, or in itself; it is entered once.
#[derive(Debug, Default)]
pub(crate) struct Seen(HashSet<NodeId>);

impl Seen {
    /// Notes that the walk enters a directory.
    ///
    /// # Errors
    /// `Stopped`; in one line, if the walk has been there or is too deep.
    pub(crate) fn enter(&mut self, at: &At, dir: &Attr) -> Done {
        crate::interrupt::check()?;
        if at.path.len() > PATH_MAX {
            let line = format!(
                "{}: deeper than {PATH_MAX} bytes of path; not entered",
                at.source
            );
            return Err(Fail::new(Exit::Failed, line));
        }
        if self.0.insert(dir.node) {
            return Ok(());
        }
        let line = format!(
            "{at}: this directory is in another place too; the volume is damaged: \
             volary fsck -n {}",
            at.source
        );
        Err(Fail::new(Exit::Damaged, line))
    }
}

/// A node as JSON. Names are escaped as everywhere; sizes are in bytes.
#[derive(Serialize)]
pub(crate) struct NodeJson {
    path: String,
    name: String,
    kind: &'static str,
    mode: String,
    uid: u32,
    gid: u32,
    size: u64,
    allocated: u64,
    links: u32,
    inode: u64,
    generation: u32,
    accessed: String,
    modified: String,
    changed: String,
    born: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dos: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl NodeJson {
    /// Of the node at `path`; `target` is what a symlink holds.
    pub(crate) fn new(path: &[u8], name: &[u8], attr: &Attr, target: Option<&[u8]>) -> Self {
        let is_device = matches!(attr.kind, FileKind::CharDevice | FileKind::BlockDevice);
        Self {
            path: escape(path).to_string(),
            name: escape(name).to_string(),
            kind: kind_word(attr.kind),
            mode: format!("{:04o}", attr.mode),
            uid: attr.uid,
            gid: attr.gid,
            size: attr.size,
            allocated: attr.allocated,
            links: attr.nlink,
            inode: attr.node.ino.get(),
            generation: attr.node.generation,
            accessed: clock::iso(attr.atime),
            modified: clock::iso(attr.mtime),
            changed: clock::iso(attr.ctime),
            born: attr.btime.map(clock::iso),
            device: is_device.then(|| [major(attr.rdev), minor(attr.rdev)]),
            dos: attr.dos.map(dos_letters),
            target: target.map(|t| escape(t).to_string()),
        }
    }
}

/// Returns what a symlink holds; `None` for all else, and for one that is unreadable.
pub(crate) fn target(session: &Session, attr: &Attr) -> Option<Vec<u8>> {
    if attr.kind != FileKind::Symlink {
        return None;
    }
    session.readlink(attr.node).ok()
}

/// Major number of a device.
pub(crate) const fn major(rdev: u64) -> u64 {
    rdev >> 32
}

/// Minor number of a device.
pub(crate) const fn minor(rdev: u64) -> u64 {
    rdev & 0xffff_ffff
}

/// Returns the kind in a word.
pub(crate) const fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Dir => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "character device",
        FileKind::BlockDevice => "block device",
    }
}

/// Returns the kind as the letter of `find -type`.
pub(crate) const fn kind_letter(kind: FileKind) -> u8 {
    match kind {
        FileKind::File => b'f',
        FileKind::Dir => b'd',
        FileKind::Symlink => b'l',
        FileKind::Fifo => b'p',
        FileKind::Socket => b's',
        FileKind::CharDevice => b'c',
        FileKind::BlockDevice => b'b',
    }
}

/// `drwxr-sr-t`, as `ls -l` has it.
pub(crate) fn mode_letters(attr: &Attr) -> [u8; 10] {
    let mut text = *b"?rwxrwxrwx";
    for (at, letter) in text.iter_mut().enumerate().skip(1) {
        if attr.mode >> (9 - at) & 1 == 0 {
            *letter = b'-';
        }
    }
    let [kind, _, _, user, _, _, group, _, _, others] = &mut text;
    *kind = match kind_letter(attr.kind) {
        b'f' => b'-',
        letter => letter,
    };
    for (bit, place, letter) in [
        (0o4000, user, b's'),
        (0o2000, group, b's'),
        (0o1000, others, b't'),
    ] {
        if attr.mode & bit != 0 {
            *place = if *place == b'x' {
                letter
            } else {
                letter.to_ascii_uppercase()
            };
        }
    }
    text
}

/// The DOS attributes that can be set, and their letters.
pub(crate) const DOS: [(u8, char); 4] = [(1, 'R'), (2, 'H'), (4, 'S'), (0x20, 'A')];

/// `RHSA`, with `-` for what is not set.
pub(crate) fn dos_letters(dos: u8) -> String {
    DOS.iter()
        .map(|(bit, letter)| if dos & bit != 0 { *letter } else { '-' })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use volary::{NodeId, Time};

    pub(crate) fn attr(kind: FileKind, mode: u32) -> Attr {
        Attr {
            node: NodeId::new(7, 0).unwrap(),
            kind,
            mode,
            nlink: 1,
            uid: 1,
            gid: 2,
            rdev: 0,
            size: 3,
            allocated: 512,
            io_size: 4096,
            atime: Time::EPOCH,
            mtime: Time::EPOCH,
            ctime: Time::EPOCH,
            btime: None,
            change: 0,
            dos: Some(0x21),
        }
    }

    #[test]
    fn a_directory_without_end_is_not_listed() {
        use volary::{Attach, Cred, SetAttr, Source, Volume, VolumeOptions};
        let source = Source::Memory {
            size: Some(64 << 20),
        };
        let opened = volary::open_volume(&source, &Attach::default(), Time::EPOCH).unwrap();
        let volume = Volume::new(opened.fs, VolumeOptions::new("mem", || Time::EPOCH));
        let session = volume.session(Cred::root());
        for number in 0..3000 {
            let name = format!("entry{number}");
            session
                .mkdir(session.root(), name.as_bytes(), &SetAttr::mode(0o755))
                .unwrap();
        }
        let listed = |max| {
            let listing = Listing::read(&session, session.root(), max);
            (listing.end.map_err(|e| e.kind()), listing.rows.len())
        };
        assert_eq!(listed(LISTING_MAX), (Ok(()), 3000));
        let (refused, count) = listed(300_000);
        assert_eq!(refused, Err(volary::Kind::TooBig));
        assert!(count < 3000, "{count}");
    }

    #[test]
    fn modes_as_letters() {
        for (kind, mode, text) in [
            (FileKind::File, 0o644, "-rw-r--r--"),
            (FileKind::Dir, 0o1777, "drwxrwxrwt"),
            (FileKind::File, 0o4755, "-rwsr-xr-x"),
            (FileKind::File, 0o6644, "-rwSr-Sr--"),
            (FileKind::Symlink, 0o777, "lrwxrwxrwx"),
            (FileKind::Dir, 0o1000, "d--------T"),
        ] {
            assert_eq!(
                std::str::from_utf8(&mode_letters(&attr(kind, mode))),
                Ok(text)
            );
        }
    }

    #[test]
    fn dos_attributes_as_letters() {
        assert_eq!(dos_letters(0x21), "R--A");
        assert_eq!(dos_letters(0), "----");
    }
}
