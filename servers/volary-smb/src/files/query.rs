//! QUERY_INFO (MS-SMB2 3.3.5.20).

use super::names::{Path, shown, to_utf16};
use super::open::File;
use super::security::{self, descriptor::parts};
use super::{access, attrs, ea, short};
use crate::answer::{Answer, Failure};
use crate::files::call::Call;
use crate::wire::Dialect;
use crate::wire::FileId;
use crate::wire::fscc::file::{self, OpenFacts};
use crate::wire::fscc::volume::{self, VolumeFacts};
use crate::wire::fscc::{set, time};
use crate::wire::{Cursor, Out, Status, out::len32};
use std::sync::atomic::Ordering;
use volary_core::{Attr, Caps};

/// `InfoType`.
pub(crate) mod info {
    pub(crate) const FILE: u8 = 1;
    pub(crate) const FILESYSTEM: u8 = 2;
    pub(crate) const SECURITY: u8 = 3;
    pub(crate) const QUOTA: u8 = 4;
}

/// A request.
struct Asked<'a> {
    class: u8,
    /// The room in the reply, in bytes.
    max: usize,
    additional: u32,
    input: &'a [u8],
}

/// Answers QUERY_INFO.
pub(crate) fn query_info(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 41 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let (kind, class, max) = (c.u8()?, c.u8()?, c.u32()?);
    let input_at = c.u16()?;
    c.skip(2)?;
    let (input_len, additional) = (c.u32()?, c.u32()?);
    c.skip(4)?;
    let id = FileId::read(&mut c)?;
    let file = call.named(id)?;
    if max > call.link.io_max() {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let input = match input_len {
        0 => &[][..],
        len => call.part(input_at.into(), len as usize)?,
    };
    let asked = Asked {
        class,
        max: max as usize,
        additional,
        input,
    };
    match kind {
        info::FILE => of_file(call, &file, &asked),
        info::FILESYSTEM => of_volume(call, &asked),
        info::SECURITY => of_security(call, &file, &asked),
        info::QUOTA => Err(Status::NOT_SUPPORTED.into()),
        _ => Err(Status::INVALID_PARAMETER.into()),
    }
}

/// Returns the reply, truncated to `max` bytes. At least the first `fixed` bytes must fit.
///
/// # Errors
/// `INFO_LENGTH_MISMATCH`; `BUFFER_OVERFLOW` with the data that fits.
fn fitted(data: &[u8], fixed: usize, max: usize) -> Answer {
    if max < fixed {
        return Err(Status::INFO_LENGTH_MISMATCH.into());
    }
    match data.get(..max) {
        Some(cut) if cut.len() < data.len() => {
            Err(Failure::with_body(Status::BUFFER_OVERFLOW, reply(cut)))
        }
        _ => Ok(reply(data)),
    }
}

fn reply(data: &[u8]) -> Vec<u8> {
    const DATA_AT: u16 = 64 + 8;
    let mut out = Out::with_capacity(data.len().saturating_add(8));
    out.u16(9).u16(DATA_AT).u32(len32(data.len())).bytes(data);
    out.done()
}

fn of_file(call: &Call<'_>, file: &File, asked: &Asked<'_>) -> Answer {
    let mut out = Out::new();
    let fixed = match asked.class {
        15 => return full_ea(call, file, asked),
        8 | 14 | 16 | 17 => own_class(file, asked.class, &mut out),
        _ => node_class(call, file, asked.class, &mut out)?,
    };
    fitted(&out.done(), fixed, asked.max)
}

/// Encodes a class that concerns only the open. Returns its length.
fn own_class(file: &File, class: u8, out: &mut Out) -> usize {
    match class {
        8 => out.u32(file.access),
        14 => out.u64(file.position.load(Ordering::Relaxed)),
        16 => out.u32(mode(file)),
        // Buffers need no alignment.
        _ => out.u32(0),
    };
    out.len()
}

/// Returns `FileModeInformation`.
fn mode(file: &File) -> u32 {
    u32::try_from(file.mode.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Encodes a class that concerns the node. Returns how many bytes must fit.
fn node_class(call: &Call<'_>, file: &File, class: u8, out: &mut Out) -> Result<usize, Failure> {
    let session = &call.tree.session;
    let needs_attributes = matches!(class, 4 | 18 | 34 | 35);
    if needs_attributes {
        file.need_any(access::READ_ATTRIBUTES)?;
    }
    let attr = session.getattr_open(file.open)?;
    let facts = open_facts(call, file, &attr, class);
    let exact = |out: &mut Out| Ok(out.len());
    match class {
        4 => file::basic(out, &facts.file),
        5 => file::standard(out, &facts),
        6 => {
            out.u64(facts.file.id);
        }
        7 => {
            out.u32(facts.file.ea_size);
        }
        9 => {
            file::name(out, &facts.path);
            return Ok(8);
        }
        18 => {
            file::all(out, &facts);
            return Ok(file::ALL_FIXED + 4);
        }
        21 => {
            let name = file.path.lock().name().map(short::name);
            let name = name.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
            file::name(out, &to_utf16(name.as_bytes()));
            return Ok(8);
        }
        22 => {
            file::streams(out, &facts.file);
            return Ok(if facts.file.is_dir() { 0 } else { 32 });
        }
        28 => file::compression(out, &facts.file),
        34 => file::network_open(out, &facts.file),
        35 => file::attribute_tag(out, &facts.file),
        48 if call.link.dialect() >= Dialect::Smb311 => {
            let path = facts.path.get(2..).unwrap_or_default();
            file::name(out, path);
            return Ok(8);
        }
        59 => file::id(out, serial(call).into(), &facts.file),
        48 => return Err(Status::NOT_SUPPORTED.into()),
        _ => return Err(Status::INVALID_INFO_CLASS.into()),
    }
    exact(out)
}

fn open_facts(call: &Call<'_>, file: &File, attr: &Attr, class: u8) -> OpenFacts {
    let session = &call.tree.session;
    let mut facts = attrs::facts(&call.tree.common, attr);
    if matches!(class, 7 | 18) {
        facts.ea_size = attrs::ea_size(&call.tree.common, attr);
    }
    let path = shown_path(call, file);
    OpenFacts {
        file: facts,
        delete_pending: session.delete_pending(file.open),
        access: file.access,
        position: file.position.load(Ordering::Relaxed),
        mode: mode(file),
        path,
    }
}

/// Returns the path from the share's root, with the entry's current name.
fn shown_path(call: &Call<'_>, file: &File) -> Vec<u8> {
    let mut path = file.path.lock().components();
    if let (Some((_, name)), Some(last)) = (call.tree.session.place(file.open), path.last_mut()) {
        *last = name;
    }
    let path = Path::show(&path);
    if path.is_empty() {
        to_utf16(b"\\")
    } else {
        to_utf16(&path)
    }
}

fn full_ea(call: &Call<'_>, file: &File, asked: &Asked<'_>) -> Answer {
    file.need_any(access::READ_EA)?;
    let names = match asked.input {
        [] => None,
        input => Some(set::get_ea(input).ok_or(Status::INVALID_PARAMETER)?),
    };
    let list = ea::list(&call.tree.session, file.node, names.as_deref());
    if list.is_empty() {
        return Err(Status::NO_EAS_ON_FILE.into());
    }
    if list.len() > asked.max {
        return Err(Status::BUFFER_OVERFLOW.into());
    }
    Ok(reply(&list))
}

/// Returns a serial number for the volume, derived from its name.
fn serial(call: &Call<'_>) -> u32 {
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    call.tree
        .session
        .volume()
        .name()
        .as_bytes()
        .iter()
        .fold(0x811c_9dc5, step)
}

fn of_volume(call: &Call<'_>, asked: &Asked<'_>) -> Answer {
    let facts = volume_facts(call)?;
    let mut out = Out::new();
    let fixed = match asked.class {
        1 => {
            volume::volume(&mut out, &facts);
            24
        }
        5 => {
            volume::attributes(&mut out, &facts);
            16
        }
        3 => exact(&mut out, |out| volume::size(out, &facts)),
        4 => exact(&mut out, |out| volume::device(out, &facts)),
        6 => exact(&mut out, volume::control),
        7 => exact(&mut out, |out| volume::full_size(out, &facts)),
        8 => exact(&mut out, |out| volume::object_id(out, &facts)),
        11 => exact(&mut out, volume::sector_size),
        _ => return Err(Status::INVALID_INFO_CLASS.into()),
    };
    fitted(&out.done(), fixed, asked.max)
}

fn exact(out: &mut Out, put: impl FnOnce(&mut Out)) -> usize {
    put(out);
    out.len()
}

/// Attributes of file systems (MS-FSCC 2.5.1).
mod fs_attribute {
    pub(super) const CASE_SENSITIVE_SEARCH: u32 = 0x1;
    pub(super) const CASE_PRESERVED: u32 = 0x2;
    pub(super) const UNICODE: u32 = 0x4;
    pub(super) const ACLS: u32 = 0x8;
    pub(super) const SPARSE_FILES: u32 = 0x40;
    pub(super) const REPARSE_POINTS: u32 = 0x80;
    pub(super) const OBJECT_IDS: u32 = 0x1_0000;
    pub(super) const READ_ONLY: u32 = 0x8_0000;
    pub(super) const HARD_LINKS: u32 = 0x40_0000;
    pub(super) const EAS: u32 = 0x80_0000;
}

fn volume_facts(call: &Call<'_>) -> Result<VolumeFacts, Failure> {
    use fs_attribute::{
        ACLS, CASE_PRESERVED, CASE_SENSITIVE_SEARCH, EAS, HARD_LINKS, OBJECT_IDS, READ_ONLY,
        REPARSE_POINTS, SPARSE_FILES, UNICODE,
    };
    let session = &call.tree.session;
    let caps = session.caps();
    let stat = session.statfs()?;
    // Whatever a driver tells, the unit and its next multiple are numbers.
    let unit = stat.block_size.clamp(512, 1 << 30).next_multiple_of(512);
    let units = |bytes: u64| bytes / u64::from(unit);
    let read_only = call.tree.is_read_only() || !caps.has(Caps::WRITE);
    let mut attributes = UNICODE | OBJECT_IDS;
    for (cap, bit) in [
        (Caps::CASE_SENSITIVE, CASE_SENSITIVE_SEARCH),
        (Caps::CASE_KEEPING, CASE_PRESERVED),
        (Caps::MODES, ACLS),
        (Caps::SYMLINKS, REPARSE_POINTS),
        (Caps::HARD_LINKS, HARD_LINKS),
        (Caps::XATTRS, EAS),
    ] {
        if caps.has(cap) {
            attributes |= bit;
        }
    }
    if read_only {
        attributes |= READ_ONLY;
    }
    // An extended attribute marks sparse files.
    if caps.has(Caps::HOLES | Caps::XATTRS) {
        attributes |= SPARSE_FILES;
    }
    let root = session.getattr(session.root())?;
    let born = root.btime.unwrap_or(root.ctime);
    let mut id = [0; 16];
    for (to, from) in id.iter_mut().zip(call.link.shared.guid) {
        *to = from;
    }
    for (to, from) in id.iter_mut().zip(serial(call).to_le_bytes()) {
        *to ^= from;
    }
    Ok(VolumeFacts {
        created: time::from_time(born),
        serial: serial(call),
        label: to_utf16(&shown(call.tree.name().as_bytes())),
        unit,
        total: units(stat.size),
        available: units(stat.available),
        free: units(stat.free),
        attributes,
        name_max: u32::from(caps.name_max.min(255)),
        id,
        read_only,
    })
}

fn of_security(call: &Call<'_>, file: &File, asked: &Asked<'_>) -> Answer {
    let wanted = asked.additional;
    if wanted & (parts::OWNER | parts::GROUP | parts::DACL) != 0 {
        file.need_any(access::READ_CONTROL)?;
    }
    if wanted & parts::SACL != 0 {
        file.need_any(access::SYSTEM_SECURITY)?;
    }
    let attr = call.tree.session.getattr_open(file.open)?;
    let bytes = security::of_node(&call.tree.common.root_session(), &attr, wanted).emit();
    if bytes.len() > asked.max {
        return Err(too_small(call, bytes.len()));
    }
    Ok(reply(&bytes))
}

/// Returns `BUFFER_TOO_SMALL` with the required length.
fn too_small(call: &Call<'_>, needed: usize) -> Failure {
    let needed = len32(needed).to_le_bytes();
    if call.link.dialect() < Dialect::Smb311 {
        return Failure::with_data(Status::BUFFER_TOO_SMALL, 0, &needed);
    }
    let mut context = Out::new();
    context.u32(4).u32(0).bytes(&needed);
    Failure::with_data(Status::BUFFER_TOO_SMALL, 1, &context.done())
}
