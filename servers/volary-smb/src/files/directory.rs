//! QUERY_DIRECTORY (MS-SMB2 3.3.5.18, MS-FSA 2.1.5.6).

use super::names::{shown, to_utf16, to_wtf8};
use super::open::{File, Scan, Tree};
use super::wildcard::Pattern;
use super::{access, attrs, short};
use crate::answer::{Answer, Failure};
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::fscc::dir::{DirLevel, DirList};
use crate::wire::fscc::file::FileFacts;
use crate::wire::{Cursor, Out, Status, out::len32};
use volary_core::{Attr, DirBuf, DirEntry};
use volary_session::{Listed, Session};

const RESTART: u8 = 0x1;
const SINGLE: u8 = 0x2;
const REOPEN: u8 = 0x10;

/// The longest pattern, in bytes. It is twice the longest name, because a wildcard may match
/// nothing.
const PATTERN_MAX: u16 = 2 * 2 * 255;
/// Entries that are read at once, and the bytes of their names.
const ENTRIES: usize = 256;
const NAMES: usize = 16 << 10;
/// Entries that are read at once where one is wanted.
const FEW_ENTRIES: usize = 64;

/// Answers QUERY_DIRECTORY.
pub(crate) fn query_directory(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 33 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let (class, flags) = (c.u8()?, c.u8()?);
    c.skip(4)?;
    let id = FileId::read(&mut c)?;
    let (name_at, name_len, max) = (c.u16()?, c.u16()?, c.u32()?);
    let file = call.named(id)?;
    if !file.is_dir() {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let level = DirLevel::from_class(class).ok_or(Status::INVALID_INFO_CLASS)?;
    file.need_any(access::READ_DATA)?;
    let pattern = match name_len {
        0 => return Err(Status::OBJECT_NAME_INVALID.into()),
        len if len > PATTERN_MAX => return Err(Status::OBJECT_NAME_INVALID.into()),
        len => call.part(name_at.into(), len.into())?,
    };
    let max = max.min(call.link.io_max()) as usize;
    if max < level.fixed() {
        return Err(Status::INFO_LENGTH_MISMATCH.into());
    }
    let mut scan = file.scan.lock();
    if scan.is_none() || flags & (RESTART | REOPEN) != 0 {
        let pattern = to_wtf8(pattern).ok_or(Status::INVALID_PARAMETER)?;
        *scan = Some(Scan::new(&String::from_utf8_lossy(&pattern)));
    }
    let scan = scan.as_mut().ok_or(Status::INTERNAL_ERROR)?;
    let mut listing = Listing {
        call,
        looked_at: 0,
        session: &call.tree.session,
        tree: call.tree,
        file: &file,
        list: DirList::new(level, max),
        level,
        max,
        single: flags & SINGLE != 0,
    };
    listing.fill(scan)?;
    if listing.list.is_empty() {
        return Err(if scan.found {
            Status::NO_MORE_FILES
        } else {
            Status::NO_SUCH_FILE
        }
        .into());
    }
    scan.found = true;
    Ok(reply(&listing.list.into_bytes()))
}

fn reply(list: &[u8]) -> Vec<u8> {
    const LIST_AT: u16 = 64 + 8;
    let mut out = Out::with_capacity(list.len().saturating_add(8));
    out.u16(9).u16(LIST_AT).u32(len32(list.len())).bytes(list);
    out.done()
}

/// A reply in progress.
struct Listing<'a> {
    call: &'a Call<'a>,
    /// Entries that were visited.
    looked_at: usize,
    session: &'a Session,
    tree: &'a Tree,
    file: &'a File,
    list: DirList,
    level: DirLevel,
    /// The most bytes of the reply.
    max: usize,
    single: bool,
}

/// Whether the reply has room for more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    More,
    Full,
}

impl Listing<'_> {
    fn fill(&mut self, scan: &mut Scan) -> Result<(), Failure> {
        if self.dots(scan)? == Room::Full {
            return Ok(());
        }
        if scan.pattern.is_plain() {
            return self.one(scan);
        }
        while !scan.ended {
            let count = if self.single { FEW_ENTRIES } else { ENTRIES };
            self.call.check_search(self.looked_at)?;
            let mut buf = DirBuf::new(count, NAMES, self.level.has_facts());
            let end = self.session.readdir(self.file.open, scan.place, &mut buf)?;
            for entry in buf.iter() {
                self.looked_at = self.looked_at.saturating_add(1);
                let room = self.entry(&scan.pattern, &entry)?;
                if room == Room::Full {
                    return Ok(());
                }
                scan.place = entry.next;
                if self.single && !self.list.is_empty() {
                    return Ok(());
                }
            }
            scan.ended = end || buf.is_empty();
        }
        Ok(())
    }

    /// Adds the one entry that a name without wildcards means, which is the entry that the name
    /// means in a path: the one of that spelling, else the first that matches.
    fn one(&mut self, scan: &mut Scan) -> Result<(), Failure> {
        let mut place = scan.place;
        while !scan.ended {
            self.call.check_search(self.looked_at)?;
            let mut buf = DirBuf::new(FEW_ENTRIES, NAMES, self.level.has_facts());
            let end = self.session.readdir(self.file.open, place, &mut buf)?;
            for entry in buf.iter() {
                place = entry.next;
                self.looked_at = self.looked_at.saturating_add(1);
                if scan.pattern.is_spelled(&shown(entry.name)) {
                    self.list = DirList::new(self.level, self.max);
                    self.entry(&scan.pattern, &entry)?;
                    scan.ended = true;
                    return Ok(());
                }
                if self.list.is_empty() {
                    self.entry(&scan.pattern, &entry)?;
                }
            }
            scan.ended = end || buf.is_empty();
        }
        Ok(())
    }

    /// Adds `.` and `..`, which the volume does not list.
    fn dots(&mut self, scan: &mut Scan) -> Result<Room, Failure> {
        while let Some(name) = [&b"."[..], b".."].get(usize::from(scan.dots)) {
            let text = std::str::from_utf8(name).unwrap_or_default();
            if scan.pattern.finds(text) {
                let own = self.session.getattr_open(self.file.open)?;
                let attr = match *name {
                    b".." => self.session.lookup(own.node, b"..").map_or(own, |e| e.attr),
                    _ => own,
                };
                let facts = self.facts(&attr);
                if !self.push(name, &[], &facts)? {
                    return Ok(Room::Full);
                }
            }
            scan.dots = scan.dots.saturating_add(1);
            if self.single && !self.list.is_empty() {
                return Ok(Room::Full);
            }
        }
        Ok(Room::More)
    }

    fn entry(&mut self, pattern: &Pattern, entry: &DirEntry<'_>) -> Result<Room, Failure> {
        let name = entry.name;
        let seen = shown(name);
        if !pattern.is_all() && !finds(pattern, &seen, name) {
            return Ok(Room::More);
        }
        let Some(facts) = self.facts_of(entry)? else {
            return Ok(Room::More);
        };
        let short = match self.level {
            DirLevel::Both | DirLevel::IdBoth => short_of(name),
            _ => Vec::new(),
        };
        let pushed = self.push(&seen, &short, &facts)?;
        Ok(if pushed { Room::More } else { Room::Full })
    }

    /// Returns an entry's information for the reply: zeros if its node is damaged, and `None` if it
    /// was removed meanwhile.
    fn facts_of(&self, entry: &DirEntry<'_>) -> Result<Option<FileFacts>, Failure> {
        if !self.level.has_facts() {
            return Ok(Some(FileFacts::default()));
        }
        let attr = match self.session.listed(self.file.node, entry)? {
            Listed::Known(attr) => attr,
            Listed::Unknown => return Ok(Some(FileFacts::default())),
            Listed::Gone => return Ok(None),
        };
        let mut facts = self.facts(&attr);
        facts.ea_size = match self.level {
            DirLevel::Directory => 0,
            _ => attrs::ea_size(&self.tree.common, &attr),
        };
        Ok(Some(facts))
    }

    fn facts(&self, attr: &Attr) -> FileFacts {
        attrs::facts(&self.tree.common, attr)
    }

    /// Adds an entry to the reply. Returns whether there was room.
    ///
    /// # Errors
    /// `INFO_LENGTH_MISMATCH` if not even the first entry fits.
    fn push(&mut self, name: &[u8], short: &[u8], facts: &FileFacts) -> Result<bool, Failure> {
        let pushed = self.list.push(&to_utf16(name), short, facts);
        if !pushed && self.list.is_empty() {
            return Err(Status::INFO_LENGTH_MISMATCH.into());
        }
        Ok(pushed)
    }
}

fn finds(pattern: &Pattern, seen: &[u8], name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(seen);
    pattern.finds(&text) || (pattern.is_plain() && pattern.finds(&short::name(name)))
}

/// Returns the 8.3 name. It is empty if the name itself is one.
fn short_of(name: &[u8]) -> Vec<u8> {
    let short = short::name(name);
    if short.as_bytes().eq_ignore_ascii_case(name) {
        Vec::new()
    } else {
        to_utf16(short.as_bytes())
    }
}
