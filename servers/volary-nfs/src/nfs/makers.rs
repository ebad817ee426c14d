//! CREATE, MKDIR, SYMLINK, MKNOD.

use super::attrs;
use super::attrs::{Shown, kind_of, read_set};
use super::common::{Answered, read_place};
use crate::exports::resolve::At;
use crate::exports::resolve::Exports;
use crate::kept::exclusive::Verifier;
use crate::kept::order::Wcc;
use crate::rpc::call::Call;
use crate::status::Status;
use volary_core::{Attr, Create, FileKind, Kind, Mode, SetAttr};
use volary_rpc::{Decoded, Garbage, Input, Output};
use volary_session::Party;
use volary_session::{OpenHow, PATH_MAX};

/// How often CREATE tries again while others make and remove the name.
const RACES_MAX: u32 = 16;
/// The mode of a new node if the client gives none.
const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;
/// The mode of a file created exclusively: the client sets the final one later.
const EXCLUSIVE_MODE: u32 = 0o600;

/// A `createhow3`.
enum How {
    Unchecked(SetAttr),
    Guarded(SetAttr),
    Exclusive(Verifier),
}

impl How {
    fn read(input: &mut Input<'_>) -> Decoded<Self> {
        match input.u32()? {
            0 => read_set(input).map(Self::Unchecked),
            1 => read_set(input).map(Self::Guarded),
            2 => input.array().map(Self::Exclusive),
            _ => Err(Garbage),
        }
    }
}

pub(super) fn create(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let (fh, name) = read_place(input)?;
    let how = How::read(input)?;
    make(exports, call, fh, out, |at| match &how {
        How::Unchecked(set) => at.open_or_make(name, &at.for_new(set, FILE_MODE)),
        How::Guarded(set) => at.make_file(name, &at.for_new(set, FILE_MODE)),
        How::Exclusive(verifier) => at.make_exclusively(call.party, name, *verifier),
    });
    Ok(())
}

pub(super) fn mkdir(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let (fh, name) = read_place(input)?;
    let set = read_set(input)?;
    make(exports, call, fh, out, |at| {
        let set = at.for_new(&set, DIR_MODE);
        Ok(at.session.mkdir(at.node, name, &set)?.attr)
    });
    Ok(())
}

pub(super) fn symlink(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let (fh, name) = read_place(input)?;
    let set = read_set(input)?;
    let target = input.opaque(PATH_MAX + 1)?;
    make(exports, call, fh, out, |at| {
        let set = at.for_new(&set, DIR_MODE);
        Ok(at.session.symlink(at.node, name, target, &set)?.attr)
    });
    Ok(())
}

pub(super) fn mknod(
    exports: &Exports,
    call: &Call,
    input: &mut Input<'_>,
    out: &mut Output,
) -> Decoded<()> {
    let (fh, name) = read_place(input)?;
    let kind = kind_of(input.u32()?);
    let (set, rdev) = match kind {
        Some(FileKind::CharDevice | FileKind::BlockDevice) => (read_set(input)?, input.u64()?),
        Some(FileKind::Fifo | FileKind::Socket) => (read_set(input)?, 0),
        _ => (SetAttr::default(), 0),
    };
    make(exports, call, fh, out, |at| {
        let set = at.for_new(&set, FILE_MODE);
        match kind {
            None | Some(FileKind::File | FileKind::Dir | FileKind::Symlink) => Err(Status::BADTYPE),
            // Devices are made by root only: a client's root, if it is not squashed.
            Some(kind) => Ok(at.session.mknod(at.node, name, kind, rdev, &set)?.attr),
        }
    });
    Ok(())
}

/// Makes a node and replies with its handle and attributes.
fn make(
    exports: &Exports,
    call: &Call,
    fh: &[u8],
    out: &mut Output,
    make: impl FnOnce(&At<'_>) -> Answered<Attr>,
) {
    let at = match exports.at(call, fh) {
        Ok(at) => at,
        Err(status) => {
            out.u32(status.0);
            attrs::write_wcc(out, Shown::default(), &Wcc::default());
            return;
        }
    };
    let (made, wcc) = at.change(|| make(&at));
    match made {
        Ok(attr) => {
            out.u32(Status::OK.0);
            exports.write_post_fh(out, at.export, attr.node);
            at.write_post(out, Some(&attr));
        }
        Err(status) => out.u32(status.0),
    }
    at.write_wcc(out, &wcc);
}

impl At<'_> {
    /// Returns the attributes for a new node. An owner is accepted from root only. Others' nodes
    /// belong to the caller, whom the client may know by another number.
    fn for_new(&self, set: &SetAttr, mode: u32) -> SetAttr {
        let mut set = *set;
        set.mode.get_or_insert(mode);
        if !self.session.cred().is_root() {
            (set.uid, set.gid) = (None, None);
        }
        set
    }

    /// Makes a file for GUARDED: the name must be free.
    fn make_file(&self, name: &[u8], set: &SetAttr) -> Answered<Attr> {
        let (session, size) = (&self.session, set.size);
        let set = SetAttr { size: None, ..*set };
        let how = OpenHow::from(Mode::Write).momentary();
        let made = session.create(self.node, name, Create::New, how, &set);
        let (entry, open) = made.map_err(|e| match e.kind() {
            // The name was `.` or `..`.
            Kind::IsDir => Status::EXIST,
            kind => kind.into(),
        })?;
        let attr = match size {
            Some(size) if size > 0 => session.setattr_open(open, &SetAttr::size(size)),
            _ => Ok(entry.attr),
        };
        self.export.keep(session, &entry.attr, open);
        Ok(attr?)
    }

    /// Makes a file for UNCHECKED: an existing file gets the given size, if any, and is otherwise
    /// left alone.
    fn open_or_make(&self, name: &[u8], set: &SetAttr) -> Answered<Attr> {
        for _ in 0..RACES_MAX {
            match self.make_file(name, set) {
                Err(Status::EXIST) => {}
                made => return made,
            }
            let found = match self.session.lookup(self.node, name) {
                Err(e) if e == Kind::NotFound => continue,
                found => found?,
            };
            if found.attr.kind != FileKind::File {
                return Err(Status::EXIST);
            }
            return match set.size {
                Some(size) => Ok(self.session.setattr(found.node, &SetAttr::size(size))?),
                None => Ok(found.attr),
            };
        }
        Err(Status::JUKEBOX)
    }

    /// Makes a file for EXCLUSIVE: an existing file counts as the caller's own if the same party
    /// made it with the same verifier.
    fn make_exclusively(&self, party: Party, name: &[u8], verifier: Verifier) -> Answered<Attr> {
        let mut made = self.export.verifiers.lock();
        match self.make_file(name, &SetAttr::mode(EXCLUSIVE_MODE)) {
            Ok(attr) => {
                made.note(party, attr.node, verifier);
                Ok(attr)
            }
            Err(Status::EXIST) => {
                let found = self.session.lookup(self.node, name)?;
                if made.is(party, found.node, verifier) {
                    Ok(found.attr)
                } else {
                    Err(Status::EXIST)
                }
            }
            Err(status) => Err(status),
        }
    }
}
