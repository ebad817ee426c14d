//! SET_INFO (MS-SMB2 3.3.5.21).

use super::open::{filter, tell_deletion};
use super::query::info;
use super::security::{self, descriptor::Descriptor, descriptor::parts};
use super::setting::Setting;
use super::{access, attrs, ea, io, rename};
use crate::answer::{Answer, Failure};
use crate::files::call::Call;
use crate::wire::FileId;
use crate::wire::fscc::file::attribute;
use crate::wire::fscc::le::{u8_at, u32_at, u64_at};
use crate::wire::fscc::{set, time};
use crate::wire::{Cursor, Status};
use std::sync::atomic::Ordering;
use volary_core::{Attr, Caps, Kind, SetAttr, SetTime, Time};

/// A time that the open must no longer change.
const KEEP: u64 = u64::MAX;
/// A time that the open may change again.
const CHANGE: u64 = u64::MAX - 1;
/// The greatest size of a file.
const SIZE_MAX: u64 = i64::MAX as u64;

/// Answers SET_INFO.
pub(crate) fn set_info(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 33 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let (kind, class, len, at) = (c.u8()?, c.u8()?, c.u32()?, c.u16()?);
    c.skip(2)?;
    let additional = c.u32()?;
    let id = FileId::read(&mut c)?;
    let file = call.named(id)?;
    let buf = call.part(at.into(), len as usize)?;
    let setting = Setting {
        session: call.waiting(),
        call,
        file: &file,
        buf,
    };
    match kind {
        info::FILE => setting.file_class(class)?,
        info::SECURITY => setting.security(additional)?,
        info::FILESYSTEM => return Err(Status::ACCESS_DENIED.into()),
        info::QUOTA => return Err(Status::NOT_SUPPORTED.into()),
        _ => return Err(Status::INVALID_PARAMETER.into()),
    }
    Ok(vec![2, 0])
}

/// The status for a request that is too short for its class.
const SHORT: Status = Status::INFO_LENGTH_MISMATCH;

impl Setting<'_, '_> {
    fn file_class(&self, class: u8) -> Result<(), Failure> {
        match class {
            4 => self.basic(),
            10 => rename::rename(self, false),
            65 => rename::rename(self, true),
            11 => rename::link(self),
            13 => {
                let on = u8_at(self.buf, 0).ok_or(SHORT)? != 0;
                self.disposition(on, false)
            }
            64 => self.disposition_flags(),
            14 => {
                let position = u64_at(self.buf, 0).ok_or(SHORT)?;
                self.file.position.store(position, Ordering::Relaxed);
                Ok(())
            }
            15 => self.full_ea(),
            16 => self.mode(),
            19 => self.allocation(),
            20 => self.end_of_file(),
            39 => self.valid_data_length(),
            _ => Err(Status::INVALID_INFO_CLASS.into()),
        }
    }

    /// Reports the change to watches.
    fn changed(&self, ways: u32) {
        let watches = &self.call.tree.common.watches;
        if !watches.is_empty() {
            let path = self.file.path.lock().components();
            watches.changed(self.call.tree.by(), &path, ways);
        }
    }

    fn basic(&self) -> Result<(), Failure> {
        let basic = set::basic(self.buf).ok_or(SHORT)?;
        self.file.need_any(access::WRITE_ATTRIBUTES)?;
        let times = [basic.created, basic.accessed, basic.written, basic.changed];
        if times
            .iter()
            .any(|t| *t > SIZE_MAX && *t != KEEP && *t != CHANGE)
        {
            return Err(Status::INVALID_PARAMETER.into());
        }
        let attr = self.session.getattr(self.file.node)?;
        let mut ways = 0;
        if basic.attributes != 0 {
            self.attributes(&attr, basic.attributes)?;
            ways |= filter::ATTRIBUTES;
        }
        let set = SetAttr {
            btime: new_time(basic.created).map(SetTime::To),
            atime: new_time(basic.accessed).map(SetTime::To),
            mtime: new_time(basic.written).map(SetTime::To),
            ..SetAttr::default()
        };
        let set = SetAttr {
            // A volume without birth times cannot set one.
            btime: set.btime.filter(|_| attr.btime.is_some()),
            ..set
        };
        if set != SetAttr::default() {
            self.session.setattr(self.file.node, &set)?;
        }
        ways |= way(set.btime, filter::CREATION);
        ways |= way(set.atime, filter::LAST_ACCESS);
        ways |= way(set.mtime, filter::LAST_WRITE);
        let mut frozen = self.file.frozen.lock();
        frozen.changed = match basic.changed {
            0 => frozen.changed,
            CHANGE => None,
            KEEP => frozen
                .changed
                .or(Some(self.call.tree.common.change_time(&attr))),
            set => Some(set),
        };
        freeze(&mut frozen.accessed, basic.accessed, attr.atime);
        freeze(&mut frozen.written, basic.written, attr.mtime);
        drop(frozen);
        io::keep_change_time(self.call.tree, self.file)?;
        if ways != 0 {
            self.changed(ways);
        }
        Ok(())
    }

    /// Sets the DOS attributes.
    ///
    /// # Errors
    /// `INVALID_PARAMETER` for `DIRECTORY` on a file, or `TEMPORARY` on a directory.
    fn attributes(&self, attr: &Attr, attributes: u32) -> Result<(), Failure> {
        let is_dir = self.file.is_dir();
        if attributes & attribute::DIRECTORY != 0 && !is_dir {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if attributes & attribute::TEMPORARY != 0 && is_dir {
            return Err(Status::INVALID_PARAMETER.into());
        }
        attrs::set_dos(
            &self.session,
            &self.call.tree.common,
            attr,
            attributes,
            None,
        )?;
        Ok(())
    }

    fn disposition_flags(&self) -> Result<(), Failure> {
        const DELETE: u32 = 0x1;
        const POSIX: u32 = 0x2;
        const IGNORE_READ_ONLY: u32 = 0x10;
        let flags = u32_at(self.buf, 0).ok_or(SHORT)?;
        if flags & POSIX != 0 && flags & DELETE != 0 {
            // POSIX semantics would remove the name at once, while others have it open.
            return Err(Status::NOT_SUPPORTED.into());
        }
        self.disposition(flags & DELETE != 0, flags & IGNORE_READ_ONLY != 0)
    }

    /// Marks the file for deletion, or removes the mark.
    ///
    /// # Errors
    /// `CANNOT_DELETE` for the root of the share; `MEDIA_WRITE_PROTECTED` if the volume takes no
    /// changes; `CANNOT_DELETE` for a read-only file; `DIRECTORY_NOT_EMPTY`.
    fn disposition(&self, on: bool, ignore_read_only: bool) -> Result<(), Failure> {
        self.file.need_any(access::DELETE)?;
        if self.file.path.lock().is_root() {
            return Err(Status::CANNOT_DELETE.into());
        }
        if on {
            self.call.tree.check_volume_writable()?;
        }
        let attr = self.session.getattr_open(self.file.open)?;
        let dos = attrs::dos(&self.call.tree.common, &attr);
        if on && dos & attribute::READONLY != 0 && !ignore_read_only {
            return Err(Status::CANNOT_DELETE.into());
        }
        self.session.set_delete(self.file.open, on)?;
        if on && self.file.is_dir() {
            tell_deletion(&self.call.tree.common, &self.call.tree.session, self.file);
        }
        Ok(())
    }

    fn full_ea(&self) -> Result<(), Failure> {
        self.file.need_any(access::WRITE_EA)?;
        let eas = set::full_ea(self.buf).ok_or(Status::EA_LIST_INCONSISTENT)?;
        ea::set(&self.session, self.file.node, &eas)?;
        self.changed(filter::EA);
        Ok(())
    }

    fn mode(&self) -> Result<(), Failure> {
        /// Permitted flags: `FILE_SEQUENTIAL_ONLY`, `FILE_WRITE_THROUGH`, and synchronous I/O.
        const KNOWN: u32 = 0x36;
        const SYNCHRONOUS: u32 = 0x30;
        let mode = u32_at(self.buf, 0).ok_or(SHORT)?;
        if mode & !KNOWN != 0 || mode & SYNCHRONOUS == SYNCHRONOUS {
            return Err(Status::INVALID_PARAMETER.into());
        }
        self.file.mode.store(mode.into(), Ordering::Relaxed);
        Ok(())
    }

    /// Sets the file's size, for `FileEndOfFileInformation` and for a smaller allocation.
    fn resize(&self, size: u64) -> Result<(), Failure> {
        let was = self.session.getattr_open(self.file.open)?.size;
        let (first, last) = (was.min(size), was.max(size));
        io::check_locks(&self.session, self.file.open, first, last - first, true)?;
        self.session
            .setattr_open(self.file.open, &SetAttr::size(size))?;
        io::written(self.call.tree, &self.session, self.file)
    }

    fn sized(&self) -> Result<u64, Failure> {
        let size = u64_at(self.buf, 0).ok_or(SHORT)?;
        self.file.need_any(access::WRITE_DATA)?;
        if self.file.is_dir() || size > SIZE_MAX {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(size)
    }

    fn end_of_file(&self) -> Result<(), Failure> {
        self.resize(self.sized()?)
    }

    /// Sets the allocation. If it is smaller than the content, truncates the file.
    fn allocation(&self) -> Result<(), Failure> {
        let len = self.sized()?;
        let size = self.session.getattr_open(self.file.open)?.size;
        if len < size {
            return self.resize(len);
        }
        if len > 0 && self.session.caps().has(Caps::PREALLOCATE) {
            match self.session.allocate(self.file.open, 0, len, false) {
                Err(e) if e == Kind::Unsupported => {}
                allocated => allocated?,
            }
        }
        Ok(())
    }

    /// All bytes up to the size are always valid, so this only checks its argument.
    fn valid_data_length(&self) -> Result<(), Failure> {
        let len = self.sized()?;
        let size = self.session.getattr_open(self.file.open)?.size;
        if len > size {
            return Err(Status::INVALID_PARAMETER.into());
        }
        Ok(())
    }

    fn security(&self, given: u32) -> Result<(), Failure> {
        if given & (parts::OWNER | parts::GROUP) != 0 {
            self.file.need_any(access::WRITE_OWNER)?;
        }
        if given & parts::DACL != 0 {
            self.file.need_any(access::WRITE_DAC)?;
        }
        if given & parts::SACL != 0 {
            self.file.need_any(access::SYSTEM_SECURITY)?;
        }
        let descriptor = Descriptor::parse(self.buf).ok_or(Status::INVALID_SECURITY_DESCR)?;
        let attr = self.session.getattr_open(self.file.open)?;
        let common = &self.call.tree.common;
        security::set(
            &self.session,
            &common.root_session(),
            &common.protecting,
            attr.node,
            &descriptor,
            given,
        )?;
        self.changed(filter::SECURITY);
        Ok(())
    }
}

/// Returns the time to set, if any.
fn new_time(filetime: u64) -> Option<Time> {
    let leaves = matches!(filetime, 0 | KEEP | CHANGE);
    (!leaves).then(|| time::to_time(filetime))
}

fn way(set: Option<SetTime>, way: u32) -> u32 {
    if set.is_some() { way } else { 0 }
}

/// Updates a frozen time. A time that the client sets or freezes is no longer changed by the open.
fn freeze(frozen: &mut Option<Time>, filetime: u64, now: Time) {
    match filetime {
        0 => {}
        CHANGE => *frozen = None,
        KEEP => *frozen = Some(frozen.unwrap_or(now)),
        set => *frozen = Some(time::to_time(set)),
    }
}
