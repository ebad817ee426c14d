//! Memory that a plug-in may use during one call: a context and a listing.
//!
//! Slots are never freed, but reused. So if a plug-in keeps one and calls back after it has
//! returned, the memory still exists, and the callback does nothing.

mod names;

use crate::abi::{VolaryContext, VolaryEntry, VolaryList, VolaryPathList};
use crate::convert;
use crate::names::Names;
use names::NamesCell;
use parking_lot::Mutex;
use std::ffi::{c_char, c_void};
use std::ptr;
use volary_core::{Cancel, Caps, Ctx, DirBuf, Error, Kind};

/// The most bytes of an error's message.
const NOTE_ROOM: usize = 512;

/// A context and two listings. Callbacks find a cell by the address of its first field.
pub(crate) struct Slot {
    context: *mut ContextCell,
    list: *mut ListCell,
    names: *mut NamesCell,
}

#[repr(C)]
struct ContextCell {
    c: VolaryContext,
    /// The caller's cancel; `None` between calls.
    cancel: Mutex<Option<*const Cancel>>,
    note: [u8; NOTE_ROOM],
}

#[repr(C)]
struct ListCell {
    c: VolaryList,
    /// The listing to fill; `None` between calls.
    target: Mutex<Option<Target>>,
}

/// A listing in progress.
struct Target {
    buf: *mut DirBuf,
    caps: Caps,
    last: u64,
    first: u64,
    added: usize,
    is_full: bool,
    lie: Option<String>,
}

/// The outcome of a listing.
pub(crate) struct Listed {
    pub(crate) added: usize,
    /// Whether there was no room for an entry.
    pub(crate) is_full: bool,
    /// What was wrong with an entry, if anything.
    pub(crate) lie: Option<String>,
}

static FREE: Mutex<Vec<Slot>> = Mutex::new(Vec::new());

#[expect(
    unsafe_code,
    reason = "the cells are never freed, and guard what callbacks reach by mutexes"
)]
// SAFETY: a slot is owned by one call at a time; callbacks of other threads reach only mutexes.
unsafe impl Send for Slot {}

impl Slot {
    /// Takes a free slot for a call, or makes one.
    pub(crate) fn take<'a>(cx: &'a Ctx<'_>, session: *mut c_void) -> Lent<'a> {
        let slot = FREE.lock().pop().unwrap_or_else(Self::new);
        slot.begin(cx, session);
        Lent {
            slot: Some(slot),
            _cx: std::marker::PhantomData,
        }
    }

    fn new() -> Self {
        let context = Box::leak(Box::new(ContextCell {
            c: VolaryContext {
                size: size_of::<VolaryContext>() as u32,
                uid: 0,
                gid: 0,
                group_count: 0,
                groups: ptr::null(),
                now: convert::time(volary_core::Time::EPOCH),
                session: ptr::null_mut(),
                note: ptr::null_mut(),
                note_room: NOTE_ROOM,
                cancelled: Some(cancelled),
            },
            cancel: Mutex::new(None),
            note: [0; NOTE_ROOM],
        }));
        context.c.note = context.note.as_mut_ptr().cast();
        let list = Box::leak(Box::new(ListCell {
            c: VolaryList {
                size: size_of::<VolaryList>() as u32,
                wants_attr: 0,
                add: Some(add),
            },
            target: Mutex::new(None),
        }));
        Self {
            context,
            list,
            names: NamesCell::new(),
        }
    }

    #[expect(
        unsafe_code,
        reason = "the cells are leaked: only a pointer leads to them"
    )]
    fn begin(&self, cx: &Ctx<'_>, session: *mut c_void) {
        // SAFETY: the cell is never freed, and this call alone owns the slot. Fields are written
        // one by one: no reference covers the mutex that a late callback may hold.
        unsafe {
            let c = &raw mut (*self.context).c;
            (*c).uid = cx.cred.uid;
            (*c).gid = cx.cred.gid;
            (*c).group_count = u32::try_from(cx.cred.groups.len()).unwrap_or(0);
            (*c).groups = cx.cred.groups.as_ptr();
            (*c).now = convert::time(cx.now);
            (*c).session = session;
            (*c).note = (&raw mut (*self.context).note).cast();
            (*c).note_room = NOTE_ROOM;
            *(*c).note = 0;
            *(*self.context).cancel.lock() = Some(cx.cancel);
        }
    }
}

/// A slot, for the duration of a call.
pub(crate) struct Lent<'a> {
    slot: Option<Slot>,
    _cx: std::marker::PhantomData<&'a ()>,
}

impl Lent<'_> {
    fn cells(&self) -> (*mut ContextCell, *mut ListCell) {
        let slot = self.slot.as_ref();
        slot.map_or((ptr::null_mut(), ptr::null_mut()), |s| (s.context, s.list))
    }

    /// Returns the context for the plug-in.
    pub(crate) fn context(&self) -> *const VolaryContext {
        self.cells().0.cast()
    }

    /// Returns the error of a negative result, with the plug-in's message.
    #[expect(unsafe_code, reason = "the note is in a leaked cell")]
    pub(crate) fn error(&self, what: &str, code: i64) -> Error {
        let Some(kind) = convert::kind(code) else {
            let words = format!("the plug-in's {what} answered {code}, which is no error");
            return Error::note(Kind::Io, words);
        };
        let mut note = [0; NOTE_ROOM];
        // SAFETY: the cell is there for ever, and the call has returned.
        unsafe {
            let from = (&raw const (*self.cells().0).note).cast::<u8>();
            ptr::copy_nonoverlapping(from, note.as_mut_ptr(), NOTE_ROOM);
        }
        let len = note.iter().position(|&b| b == 0).unwrap_or(NOTE_ROOM);
        match note.get(..len) {
            Some(words) if len > 0 => Error::note(kind, volary_core::escape(words).to_string()),
            _ => kind.into(),
        }
    }

    /// Fills `buf` by `call`, which gets the listing.
    #[expect(unsafe_code, reason = "the listing is in a leaked cell")]
    pub(crate) fn listing<T>(
        &self,
        buf: &mut DirBuf,
        caps: Caps,
        from: u64,
        call: impl FnOnce(*const VolaryList) -> T,
    ) -> (T, Listed) {
        let cell = self.cells().1;
        let target = Target {
            caps,
            last: from,
            first: from,
            added: 0,
            is_full: false,
            lie: None,
            buf,
        };
        // SAFETY: the cell is never freed, and its first field is this call's alone.
        let live = unsafe {
            (*cell).c.wants_attr = u32::from((*target.buf).wants_attr());
            &(*cell).target
        };
        *live.lock() = Some(target);
        let answer = call(cell.cast());
        let ended = live.lock().take();
        let listed = ended.map(|t| Listed {
            added: t.added,
            is_full: t.is_full,
            lie: t.lie,
        });
        let nothing = Listed {
            added: 0,
            is_full: false,
            lie: None,
        };
        (answer, listed.unwrap_or(nothing))
    }
}

impl Lent<'_> {
    /// Lists names of at most `name_max` bytes by `call`.
    ///
    /// # Errors
    /// What was wrong with a name, or `None` if there was no room for all names.
    pub(crate) fn names<T>(
        &self,
        name_max: usize,
        room: usize,
        call: impl FnOnce(*const VolaryPathList) -> T,
    ) -> (T, Result<Names, Option<String>>) {
        let cell = self.slot.as_ref().map_or(ptr::null_mut(), |s| s.names);
        names::filled(cell, name_max, room, call)
    }
}

impl Drop for Lent<'_> {
    #[expect(
        unsafe_code,
        reason = "the cells are leaked: only a pointer leads to them"
    )]
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        // SAFETY: the cell is never freed. From now on, callbacks do nothing.
        unsafe {
            *(*slot.context).cancel.lock() = None;
        }
        FREE.lock().push(slot);
    }
}

#[expect(unsafe_code, reason = "called by plug-ins")]
unsafe extern "C" fn cancelled(cx: *const VolaryContext) -> i32 {
    if cx.is_null() {
        return 1;
    }
    // SAFETY: contexts are first fields of cells that are never freed; what the mutex holds lives
    // until the call ends, which takes the mutex.
    unsafe {
        let cell = cx.cast::<ContextCell>();
        let live = (*cell).cancel.lock();
        live.map_or(1, |cancel| i32::from((*cancel).is_set()))
    }
}

#[expect(unsafe_code, reason = "called by plug-ins")]
unsafe extern "C" fn add(list: *const VolaryList, entry: *const VolaryEntry) -> i32 {
    if list.is_null() || entry.is_null() {
        return 0;
    }
    // SAFETY: listings are first fields of cells that are never freed; the plug-in promises that
    // `entry` is one.
    unsafe {
        let cell = list.cast::<ListCell>();
        let mut live = (*cell).target.lock();
        live.as_mut()
            .map_or(0, |target| i32::from(target.add(&*entry)))
    }
}

impl Target {
    /// Adds an entry. Returns false if there is no room, or if any entry was invalid.
    #[expect(
        unsafe_code,
        reason = "reads what the plug-in points to, and fills the caller's buffer"
    )]
    fn add(&mut self, entry: &VolaryEntry) -> bool {
        if self.is_full || self.lie.is_some() {
            return false;
        }
        let len = entry.name_len as usize;
        if entry.name.is_null() || len > usize::from(self.caps.name_max) {
            self.lie = Some(format!("listed a name of {len} bytes"));
            return false;
        }
        // SAFETY: the plug-in promises `name_len` bytes, and an attribute or NULL.
        let (name, attr) = unsafe {
            let name = std::slice::from_raw_parts(entry.name.cast::<u8>(), len);
            (name, entry.attr.as_ref())
        };
        let taken = self.check(entry, name).and_then(|(node, kind)| {
            let attr = attr.map(convert::attr).transpose()?;
            let attr = attr.filter(|_| !self.buf.is_null());
            let same = attr.is_none_or(|a| a.node == node && a.kind == kind);
            match same {
                true => Ok((node, kind, attr)),
                false => Err("listed attributes of another node".to_owned()),
            }
        });
        match taken {
            Err(words) => {
                self.lie = Some(words);
                false
            }
            Ok((node, kind, attr)) => {
                let next = volary_core::Cookie(entry.next);
                // SAFETY: `listing` keeps the buffer borrowed until it has taken this target back.
                let buf = unsafe { &mut *self.buf };
                let attr = attr.filter(|_| buf.wants_attr());
                let taken = buf.push(next, node, kind, name, attr);
                if taken {
                    self.last = entry.next;
                    self.added += 1;
                }
                self.is_full = !taken;
                taken
            }
        }
    }

    fn check(
        &self,
        entry: &VolaryEntry,
        name: &[u8],
    ) -> Result<(volary_core::NodeId, volary_core::FileKind), String> {
        if entry.next == 0 || entry.next == self.last || entry.next == self.first {
            return Err(format!(
                "listed an entry with the cookie {} again",
                entry.next
            ));
        }
        if volary_core::Name::new(name).is_err() {
            let name = volary_core::escape_short(name);
            return Err(format!("listed \"{name}\", which is no name"));
        }
        let node = convert::node(entry.node)?;
        Ok((node, convert::file_kind(entry.kind)?))
    }
}

/// Returns the bytes at a pointer of C.
///
/// # Safety
/// There are `len` bytes for as long as the result is used, or `len` is 0.
#[expect(unsafe_code, reason = "C gives pointers and lengths")]
pub(crate) unsafe fn bytes<'a>(at: *const c_void, len: usize) -> &'a [u8] {
    if at.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(at.cast(), len) }
}

/// Returns a pointer to bytes, for C.
pub(crate) fn chars(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}
