//! Entry points of the fuzz targets: bytes of the wire, and a table that answers whatever the input
//! says.

mod paths;

use crate::abi::*;
use crate::loaded::Loaded;
use crate::process::answer;
use crate::wire::{
    Caller, Event, Field, Head, Hello, Listed, Request, bytes, error, failed, finished,
};
use parking_lot::Mutex;
pub use paths::path_liar;
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use volary_core::{Attach, Attr, Cancel, Cred, Ctx, FileSystem, OpenId, Result, Time};

/// Parses `input` as each type that comes over the wire. Whatever can be parsed must be written as
/// the same bytes.
///
/// # Panics
/// If it is not.
pub fn wire(input: &[u8]) {
    same::<Request<'_>>(input);
    same::<Event<'_>>(input);
    same::<Hello>(input);
    same::<(bool, Vec<Listed<'_>>)>(input);
    same::<(Attr, OpenId)>(input);
    same::<(Caller, Request<'_>)>(input);
    same::<Vec<&[u8]>>(input);
    if let Some(head) = input.first_chunk().and_then(Head::parse) {
        assert_eq!(Some(&head.to_bytes()), input.first_chunk());
        let words = input.get(Head::LEN..).unwrap_or_default();
        if let Some(e) = error(head.status, words) {
            assert_eq!(failed(&e).0, head.status);
        }
    }
}

fn same<'a, T: Field<'a>>(input: &'a [u8]) {
    if let Some(value) = finished::<T>(input) {
        assert!(bytes(&value) == input, "written as something else");
    }
}

/// If `input` is a request, answers it as a worker does.
pub fn serve(fs: &dyn FileSystem, input: &[u8]) {
    if let Some(request) = finished::<Request<'_>>(input) {
        let caller = Caller {
            uid: 0,
            gid: 0,
            groups: Vec::new(),
            now: Time::EPOCH,
        };
        let mut out = Vec::new();
        if let Err(e) = answer(fs, &caller, &Cancel::new(), &request, &mut out) {
            let _ = failed(&e);
        }
    }
}

/// The source of a lying table's answers.
struct Liar {
    said: Mutex<(Vec<u8>, usize)>,
    /// A clone is kept elsewhere to tell whether this was released.
    _alive: Arc<()>,
}

impl Liar {
    fn byte(&self) -> u8 {
        let mut state = self.said.lock();
        state.1 += 1;
        let at = state.1 - 1;
        state.0.get(at).copied().unwrap_or(0)
    }

    /// Returns a number, mostly a small one that means something.
    fn number(&self) -> u64 {
        match self.byte() {
            255 => u64::MAX,
            254 => i64::MAX as u64,
            253 => u64::from(self.byte()) << 32,
            n => u64::from(n % 8),
        }
    }

    fn code(&self) -> i32 {
        match self.byte() {
            0..=127 => 0,
            n @ 128..=170 => -i32::from(n - 127),
            171..=180 => 1,
            _ => self.number() as i32,
        }
    }

    fn attr(&self) -> VolaryAttr {
        let time = || VolaryTime {
            secs: self.number() as i64,
            nanos: (self.number() as u32).wrapping_mul(u32::from(self.byte() == 1)),
        };
        VolaryAttr {
            node: VolaryNode {
                ino: self.number(),
                generation: 0,
            },
            kind: self.number() as u32,
            mode: u32::from(self.byte()) << (self.byte() % 12),
            size: self.number(),
            has: self.byte().into(),
            dos: self.number() as u32,
            mtime: time(),
            ..VolaryAttr::default()
        }
    }
}

/// Attaches a table whose answers come from `input`.
///
/// # Errors
/// Those of attaching.
#[expect(unsafe_code, reason = "a table as C has them")]
pub fn liar(input: &[u8]) -> Result<Loaded> {
    let alive = Arc::new(());
    let liar = Box::into_raw(Box::new(Liar {
        said: Mutex::new((input.to_vec(), 0)),
        _alive: Arc::clone(&alive),
    }));
    // SAFETY: it was just made.
    let size = match unsafe { (*liar).byte() } {
        0 => unsafe { (*liar).number() as u32 },
        _ => size_of::<VolaryTable>() as u32,
    };
    let table = VolaryTable {
        fs: liar.cast(),
        lookup: Some(lookup),
        getattr: Some(getattr),
        readdir: Some(readdir),
        read: Some(read),
        caps: Some(caps),
        release: Some(release),
        readlink: Some(readlink),
        listxattr: Some(readlink),
        write: Some(write),
        access: Some(access),
        size,
        ..crate::export::EMPTY
    };
    let cx = Ctx {
        cred: &Cred::root(),
        now: Time::EPOCH,
        cancel: &Cancel::new(),
    };
    // SAFETY: the table is there until this returns, and its functions are what it says.
    let attached = unsafe { Loaded::attach(&raw const table, &Attach::default(), &cx) };
    if attached.is_err() && Arc::strong_count(&alive) > 1 {
        // The table was refused before it could be released.
        // SAFETY: `release` did not free it, and nobody is left who could call that.
        drop(unsafe { Box::from_raw(liar) });
    }
    attached
}

/// # Safety
/// `fs` is a [`Liar`].
#[expect(unsafe_code, reason = "called as a plug-in is")]
unsafe fn of<'a>(fs: *mut c_void) -> &'a Liar {
    // SAFETY: as the caller promises.
    unsafe { &*fs.cast::<Liar>() }
}

#[expect(unsafe_code, reason = "called as a plug-in is")]
#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one reason: the host gives each function what the table says"
)]
mod functions {
    use super::*;

    pub(super) unsafe extern "C" fn release(fs: *mut c_void) {
        drop(unsafe { Box::from_raw(fs.cast::<Liar>()) });
    }

    pub(super) unsafe extern "C" fn lookup(
        fs: *mut c_void,
        _: *const VolaryContext,
        _: VolaryNode,
        _: *const c_char,
        _: usize,
        out: *mut VolaryAttr,
    ) -> i32 {
        unsafe {
            *out = of(fs).attr();
            of(fs).code()
        }
    }

    pub(super) unsafe extern "C" fn getattr(
        fs: *mut c_void,
        _: *const VolaryContext,
        node: VolaryNode,
        out: *mut VolaryAttr,
    ) -> i32 {
        unsafe {
            *out = of(fs).attr();
            if of(fs).byte() < 200 {
                (*out).node = node;
            }
            of(fs).code()
        }
    }

    pub(super) unsafe extern "C" fn readdir(
        fs: *mut c_void,
        _: *const VolaryContext,
        _: VolaryOpen,
        _: u64,
        list: *const VolaryList,
    ) -> i32 {
        const NAMES: &[u8; 16] = b"name/a\0b..xyz.\xff!";
        unsafe {
            let liar = of(fs);
            for _ in 0..liar.byte() % 16 {
                let attr = liar.attr();
                let at = usize::from(liar.byte() % 16);
                let entry = VolaryEntry {
                    next: liar.number(),
                    node: attr.node,
                    kind: attr.kind,
                    name_len: u32::from(liar.byte() % 17).min(16 - at as u32),
                    name: NAMES.as_ptr().add(at).cast(),
                    attr: match liar.byte() % 3 {
                        0 => &raw const attr,
                        _ => std::ptr::null(),
                    },
                };
                (*list).add.map(|add| add(list, &raw const entry));
            }
            liar.code()
        }
    }

    pub(super) unsafe extern "C" fn read(
        fs: *mut c_void,
        _: *const VolaryContext,
        _: VolaryOpen,
        _: u64,
        _: *mut c_void,
        len: usize,
    ) -> i64 {
        unsafe {
            match of(fs).byte() {
                0 => len as i64,
                1 => len as i64 + 1,
                _ => of(fs).number() as i64,
            }
        }
    }

    pub(super) unsafe extern "C" fn caps(fs: *mut c_void, out: *mut VolaryCaps) -> i32 {
        unsafe {
            if of(fs).byte() == 1 {
                (*out).name_max = of(fs).number() as u32;
                (*out).size_max = of(fs).number();
                (*out).root.ino = of(fs).number();
            }
            (*out).can = of(fs).number() as u32 | VOLARY_CAN_WRITE;
            0
        }
    }

    pub(super) unsafe extern "C" fn readlink(
        fs: *mut c_void,
        _: *const VolaryContext,
        _: VolaryNode,
        buf: *mut c_char,
        room: usize,
    ) -> i64 {
        unsafe {
            for at in 0..room.min(usize::from(of(fs).byte() % 8)) {
                *buf.add(at) = of(fs).byte().cast_signed();
            }
            of(fs).number() as i64
        }
    }

    pub(super) unsafe extern "C" fn write(
        fs: *mut c_void,
        _: *const VolaryContext,
        _: VolaryOpen,
        _: u64,
        _: u32,
        _: *const c_void,
        _: usize,
    ) -> i64 {
        unsafe { of(fs).number() as i64 }
    }

    pub(super) unsafe extern "C" fn access(
        fs: *mut c_void,
        _: *const VolaryContext,
        _: VolaryNode,
        _: u32,
    ) -> i32 {
        unsafe { of(fs).code() }
    }
}
use functions::{access, caps, getattr, lookup, read, readdir, readlink, release, write};
