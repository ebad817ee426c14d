//! LOCK (MS-SMB2 3.3.5.14, MS-FSA 2.1.5.8).

use super::access;
use super::open::{File, SEQUENCES};
use crate::answer::{Answer, Failure};
use crate::files::call::Call;
use crate::wire::Dialect;
use crate::wire::FileId;
use crate::wire::{Cursor, Status};
use volary_core::{Kind, Result as CoreResult};
use volary_session::{LockKind, Range, Session, Wait};

const SHARED: u32 = 0x1;
const EXCLUSIVE: u32 = 0x2;
const UNLOCK: u32 = 0x4;
const AT_ONCE: u32 = 0x10;
/// The most elements of a request.
const ELEMENTS_MAX: u16 = 64;

/// An element of a request.
#[derive(Clone, Copy, Debug)]
struct Element {
    /// `None` for an empty range at the start. It conflicts with nothing, and is not stored.
    range: Option<Range>,
    flags: u32,
}

/// Answers LOCK: all elements lock, or all unlock. Locks are taken all or none. If an unlock fails,
/// those before it remain done.
pub(crate) fn lock(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 48 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let (count, sequence) = (c.u16()?, c.u32()?);
    let id = FileId::read(&mut c)?;
    let file = call.named(id)?;
    let sequence = Sequence::of(call, &file, sequence);
    if sequence.is_some_and(|sequence| sequence.is_done(&file)) {
        return Ok(vec![4, 0, 0, 0]);
    }
    if count == 0 || count > ELEMENTS_MAX {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let elements = (0..count)
        .map(|_| element(&mut c))
        .collect::<Result<Vec<_>, _>>()?;
    let unlocks = elements.first().is_some_and(|e| e.flags & UNLOCK != 0);
    let session = call.waiting();
    if unlocks {
        unlock_all(&session, &file, &elements)?;
    } else {
        file.need_file()?;
        file.need_any(access::READ_DATA | access::WRITE_DATA)?;
        lock_all(call, &session, &file, &elements)?;
    }
    if let Some(sequence) = sequence {
        sequence.note(&file);
    }
    Ok(vec![4, 0, 0, 0])
}

/// The number by which a client identifies a lock request on a durable open, so that a repeated
/// request is carried out only once (MS-SMB2 3.3.5.14).
#[derive(Clone, Copy, Debug)]
struct Sequence {
    index: usize,
    number: u8,
}

impl Sequence {
    fn of(call: &Call<'_>, file: &File, field: u32) -> Option<Self> {
        let is_durable = file.claim.as_ref().is_some_and(|c| c.time.is_some());
        let counts = is_durable && call.link.dialect() >= Dialect::Smb210;
        let index = usize::try_from(field >> 4).ok()?.checked_sub(1)?;
        let number = u8::try_from(field & 0xf).unwrap_or(0);
        (counts && index < SEQUENCES).then_some(Self { index, number })
    }

    /// Returns whether the request was already carried out. If not, clears its index.
    fn is_done(self, file: &File) -> bool {
        let mut all = file.sequences.lock();
        let Some(last) = all.as_deref_mut().and_then(|all| all.get_mut(self.index)) else {
            return false;
        };
        if *last == Some(self.number) {
            return true;
        }
        *last = None;
        false
    }

    fn note(self, file: &File) {
        let mut all = file.sequences.lock();
        let all = all.get_or_insert_with(|| Box::new([None; SEQUENCES]));
        if let Some(last) = all.get_mut(self.index) {
            *last = Some(self.number);
        }
    }
}

fn element(c: &mut Cursor<'_>) -> Result<Element, Failure> {
    let (offset, len, flags) = (c.u64()?, c.u64()?, c.u32()?);
    c.skip(4)?;
    let end = u128::from(offset).saturating_add(len.into());
    if end > 1 << 64 {
        return Err(Status::INVALID_LOCK_RANGE.into());
    }
    let range = match len {
        0 => Range::empty_at(offset),
        len => Some(Range::new(offset, len)),
    };
    Ok(Element { range, flags })
}

fn unlock_all(session: &Session, file: &File, elements: &[Element]) -> Result<(), Failure> {
    for element in elements {
        if element.flags != UNLOCK {
            return Err(Status::INVALID_PARAMETER.into());
        }
        let Some(range) = element.range else {
            continue;
        };
        session
            .unlock_exact(file.open, range)
            .map_err(|e| match e.kind() {
                Kind::NotFound => Status::RANGE_NOT_LOCKED.into(),
                _ => Failure::from(e),
            })?;
    }
    Ok(())
}

fn lock_all(
    call: &Call<'_>,
    session: &Session,
    file: &File,
    elements: &[Element],
) -> Result<(), Failure> {
    let alone = elements.len() == 1;
    let _waiting = file.waits(call.wait.cancel());
    for (at, element) in elements.iter().enumerate() {
        let locked = kind(element.flags, alone).and_then(|(kind, waits)| {
            let wait = if waits {
                Wait::Yes(call.wait.cancel())
            } else {
                Wait::No
            };
            let Some(range) = element.range else {
                return Ok(());
            };
            let locked = session.lock_exact(file.open, range, kind, wait);
            locked.map_err(|e| refused(call, file, &e))
        });
        if let Err(failure) = locked {
            for had in elements.iter().take(at).filter_map(|e| e.range) {
                // It was taken a moment ago. If the file was closed since, the lock is gone too.
                let _: CoreResult<()> = session.unlock_exact(file.open, had);
            }
            return Err(failure);
        }
    }
    Ok(())
}

/// Returns the kind of a lock by its flags, and whether to wait for it. Only a single lock may
/// wait.
fn kind(flags: u32, alone: bool) -> Result<(LockKind, bool), Failure> {
    match (flags & !AT_ONCE, flags & AT_ONCE != 0) {
        (SHARED, at_once) if at_once || alone => Ok((LockKind::Shared, !at_once)),
        (EXCLUSIVE, at_once) if at_once || alone => Ok((LockKind::Exclusive, !at_once)),
        _ => Err(Status::INVALID_PARAMETER.into()),
    }
}

fn refused(call: &Call<'_>, file: &File, error: &volary_core::Error) -> Failure {
    let closed = call.tree.files.get(file.id).is_none();
    match error.kind() {
        _ if closed => Status::RANGE_NOT_LOCKED.into(),
        Kind::Locked => Status::LOCK_NOT_GRANTED.into(),
        Kind::Quota => Status::INSUFFICIENT_RESOURCES.into(),
        kind => super::status::status(kind).into(),
    }
}
