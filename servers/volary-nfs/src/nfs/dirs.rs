//! READDIR and READDIRPLUS.
//!
//! `.` and `..` come first, at the places 1 and 2; the session's cookies come after them. The
//! verifier says how long cookies are valid. On a volume with stable cookies
//! ([`Caps::STABLE_COOKIES`]) they are valid for ever. On another, they are valid for as long as
//! the directory's open is kept (a minute without a call). After that a client gets `BAD_COOKIE`
//! and begins again.
//!
//! A caller who may list a directory but not search it gets only names and numbers. READDIRPLUS
//! then leaves out handles and attributes, since LOOKUP would refuse them too.

use super::attrs::{FATTR, write_post};
use super::common::{Answered, read_fh};
use crate::exports::fh;
use crate::exports::resolve::At;
use crate::exports::resolve::Exports;
use crate::rpc::call::Call;
use crate::status::Status;
use volary_core::{Access, Attr, Caps, Cookie, DirBuf, Kind, Name};
use volary_rpc::{Decoded, Input, Output, padding};
use volary_session::Listed;

/// How many places come before the session's cookies.
const DOTS: u64 = 2;
/// The largest reply, in bytes.
const ANSWER_MAX: usize = 128 << 10;
/// The bytes around the entries: status, attributes, verifier, end of list, eof.
const FRAME: usize = 4 + 4 + FATTR + 8 + 4 + 4;
/// The bytes of an entry without its name: a mark that it follows, number, name's length, cookie.
const PLAIN: usize = 4 + 8 + 4 + 8;
/// The bytes that READDIRPLUS adds to an entry: attributes and a handle.
const PLUS: usize = 4 + FATTR + 4 + 4 + fh::LEN;

/// Which part of a listing is requested.
struct Asked {
    from: u64,
    verifier: u64,
    /// The most bytes of names, numbers and cookies.
    names_max: usize,
    /// The most bytes of the reply.
    max: usize,
    plus: bool,
}

/// Writes entries until there is no more space.
struct Page<'a> {
    exports: &'a Exports,
    at: &'a At<'a>,
    out: &'a mut Output,
    asked: &'a Asked,
    begin: usize,
    /// The bytes of names, numbers and cookies so far.
    names: usize,
    written: usize,
    /// Whether entries have attributes and handles.
    looks_up: bool,
}

pub(super) fn readdir(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let (from, verifier, max) = (input.u64()?, input.u64()?, clamped(input.u32()?));
    let asked = Asked {
        from,
        verifier,
        names_max: max,
        max,
        plus: false,
    };
    list(exports, call, fh, &asked, out);
    Ok(())
}

pub(super) fn readdirplus(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let fh = read_fh(input)?;
    let (from, verifier) = (input.u64()?, input.u64()?);
    let (names_max, max) = (clamped(input.u32()?), clamped(input.u32()?));
    let asked = Asked {
        from,
        verifier,
        names_max,
        max,
        plus: true,
    };
    list(exports, call, fh, &asked, out);
    Ok(())
}

fn list(exports: &Exports, call: &Call, fh: &[u8], asked: &Asked, out: &mut Output) {
    let at = match exports.at(call, fh) {
        Ok(at) => at,
        Err(status) => return super::nodes::write_none(out, status),
    };
    let begin = out.len();
    out.u32(Status::OK.0);
    at.write_post(out, at.attr().as_ref());
    if let Err(status) = list_at(exports, &at, asked, begin, out) {
        out.truncate(begin);
        out.u32(status.0);
        at.write_post(out, at.attr().as_ref());
    }
}

fn list_at(
    exports: &Exports,
    at: &At<'_>,
    asked: &Asked,
    begin: usize,
    out: &mut Output,
) -> Answered<()> {
    let held = at.export.open_dir(&at.session, at.node)?;
    let stable = at.export.caps().has(Caps::STABLE_COOKIES);
    // An open's number is not used again within a run, but may be in another run.
    let verifier = if stable {
        0
    } else {
        at.export.epoch.rotate_left(32) ^ held.open.0
    };
    if asked.from != 0 && asked.verifier != verifier && !stable {
        return Err(Status::BAD_COOKIE);
    }
    out.u64(verifier);
    let looks_up = asked.plus && may_search(at)?;
    let mut page = Page {
        exports,
        at,
        out,
        asked,
        begin,
        names: 0,
        written: 0,
        looks_up,
    };
    let mut eof = false;
    if page.dots()? {
        let each = PLAIN + if asked.plus { PLUS } else { 0 };
        let mut entries = DirBuf::new(asked.max / each + 1, asked.names_max, looks_up);
        let from = Cookie(asked.from.saturating_sub(DOTS));
        let read = at.session.readdir(held.open, from, &mut entries);
        let all = read.map_err(|e| match e.kind() {
            Kind::Invalid => Status::BAD_COOKIE,
            kind => kind.into(),
        })?;
        eof = page.entries(&entries)? && all;
    }
    if page.written == 0 && !eof {
        return Err(Status::TOOSMALL);
    }
    out.bool(false);
    out.bool(eof);
    Ok(())
}

/// Returns whether the caller may look up entries of the directory.
fn may_search(at: &At<'_>) -> Answered<bool> {
    match at.session.access(at.node, Access::EXEC) {
        Ok(()) => Ok(true),
        Err(e) if e == Kind::Access => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Returns a count requested by a client, limited to the largest reply.
fn clamped(count: u32) -> usize {
    usize::try_from(count).unwrap_or(ANSWER_MAX).min(ANSWER_MAX)
}

impl Page<'_> {
    /// Writes `.` and `..`; false if there was no space for one.
    fn dots(&mut self) -> Answered<bool> {
        let dots: [(u64, &[u8]); 2] = [(1, b"."), (2, b"..")];
        for (place, name) in dots {
            if place <= self.asked.from {
                continue;
            }
            // A caller who may list a directory need not have search access.
            let session = self.at.export.own_session();
            let attr = session.lookup(self.at.node, name)?.attr;
            let fits = match self.looks_up {
                true => self.entry(place, name, &attr),
                false => self.bare(place, name, attr.node.ino.get()),
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the session's entries; false if there was no space for one. Skips names that no file
    /// system may return, and entries that were removed meanwhile.
    fn entries(&mut self, entries: &DirBuf) -> Answered<bool> {
        for entry in entries.iter() {
            let place = entry.next.0.checked_add(DOTS).ok_or(Status::IO)?;
            if Name::new(entry.name).is_err() {
                continue;
            }
            let known = match self.looks_up {
                true => self.at.session.listed(self.at.node, &entry)?,
                false => Listed::Unknown,
            };
            let fits = match known {
                Listed::Known(attr) => self.entry(place, entry.name, &attr),
                Listed::Gone => continue,
                Listed::Unknown => self.bare(place, entry.name, entry.node.ino.get()),
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn entry(&mut self, place: u64, name: &[u8], attr: &Attr) -> bool {
        if !self.plain(place, name, attr.node.ino.get()) {
            return false;
        }
        write_post(self.out, self.at.shown(), Some(attr));
        let fh = self.exports.fh(self.at.export, attr.node);
        self.out.bool(true);
        self.out.opaque(&fh);
        true
    }

    /// Writes an entry without attributes and handle.
    fn bare(&mut self, place: u64, name: &[u8], number: u64) -> bool {
        let fits = self.plain(place, name, number);
        if fits && self.asked.plus {
            write_post(self.out, self.at.shown(), None);
            self.out.bool(false);
        }
        fits
    }

    /// Writes the part that every entry begins with.
    fn plain(&mut self, place: u64, name: &[u8], number: u64) -> bool {
        let names = PLAIN + name.len() + padding(name.len());
        let len = names + if self.asked.plus { PLUS } else { 0 };
        let used = self.out.len() - self.begin;
        // The 8 bytes are the end of the list.
        let full =
            used + len + 8 > self.asked.max.max(FRAME) || self.names + names > self.asked.names_max;
        if full {
            return false;
        }
        self.names += names;
        self.written += 1;
        self.out.bool(true);
        self.out.u64(number);
        self.out.opaque(name);
        self.out.u64(place);
        true
    }
}
