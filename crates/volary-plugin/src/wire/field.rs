//! The encoding of each type. Reading an invalid value returns `None`.

use volary_core::{
    Access, Attr, Cookie, Create, FileKind, Lock, Mode, NodeId, OpenId, SetAttr, SetTime, StatFs,
    Time,
};

/// A value in a body.
pub(crate) trait Field<'a>: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// Reads a value, and advances past it.
    fn take(from: &mut &'a [u8]) -> Option<Self>;
}

/// Returns the value of a body, if it fills the whole body.
pub(crate) fn finished<'a, T: Field<'a>>(mut body: &'a [u8]) -> Option<T> {
    let value = T::take(&mut body)?;
    body.is_empty().then_some(value)
}

/// Returns a body with one value.
pub(crate) fn bytes<'a, T: Field<'a>>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    value.put(&mut out);
    out
}

fn cut<'a>(from: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(head)
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Field<'_> for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                let bytes = cut(from, size_of::<$ty>())?;
                Some(<$ty>::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i32, i64);

impl Field<'_> for () {
    fn put(&self, _: &mut Vec<u8>) {}
    fn take(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl Field<'_> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<'a> Field<'a> for &'a [u8] {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self);
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        let len = u32::take(from)?;
        cut(from, usize::try_from(len).ok()?)
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        match bool::take(from)? {
            true => T::take(from).map(Some),
            false => Some(None),
        }
    }
}

impl<'a, T: Field<'a>> Field<'a> for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        let count = usize::try_from(u32::take(from)?).ok()?;
        // Each value takes at least one byte. So a false count reserves no memory.
        if count > from.len() {
            return None;
        }
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(T::take(from)?);
        }
        Some(all)
    }
}

impl<'a, A: Field<'a>, B: Field<'a>> Field<'a> for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl Field<'_> for NodeId {
    fn put(&self, out: &mut Vec<u8>) {
        self.ino.get().put(out);
        self.generation.put(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Self::new(u64::take(from)?, u32::take(from)?)
    }
}

impl Field<'_> for Time {
    fn put(&self, out: &mut Vec<u8>) {
        self.secs.put(out);
        self.nanos.put(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (secs, nanos) = (i64::take(from)?, u32::take(from)?);
        (nanos < 1_000_000_000).then_some(Self { secs, nanos })
    }
}

impl Field<'_> for SetTime {
    fn put(&self, out: &mut Vec<u8>) {
        let time = match self {
            Self::Now => None,
            Self::To(time) => Some(*time),
        };
        time.put(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let time: Option<Time> = Field::take(from)?;
        Some(time.map_or(Self::Now, Self::To))
    }
}

/// Enums, encoded by their position in a list.
macro_rules! listed {
    ($($ty:ident: $($variant:ident),*;)*) => {$(
        impl Field<'_> for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                let all = [$(Self::$variant),*];
                let at = all.iter().position(|v| v == self).unwrap_or(0);
                out.push(at as u8);
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                let all = [$(Self::$variant),*];
                all.get(usize::from(u8::take(from)?)).copied()
            }
        }
    )*};
}

listed! {
    FileKind: File, Dir, Symlink, Fifo, Socket, CharDevice, BlockDevice;
    Create: New, Open, Truncate;
    Mode: Read, Write, ReadWrite;
}

/// Structures, encoded field by field.
macro_rules! fields {
    ($($ty:ident { $($field:ident),* })*) => {$(
        impl Field<'_> for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Field::take(from)?),* })
            }
        }
    )*};
}
pub(super) use fields;

fields! {
    SetAttr { mode, uid, gid, size, atime, mtime, btime, dos }
    StatFs { block_size, size, free, available, nodes, nodes_free }
    Lock { owner, offset, len, exclusive, unlock, test }
}

macro_rules! wrapped {
    ($($ty:ident),*) => {$(
        impl Field<'_> for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self(Field::take(from)?))
            }
        }
    )*};
}

wrapped!(OpenId, Cookie, Access);

impl Field<'_> for Attr {
    fn put(&self, out: &mut Vec<u8>) {
        self.node.put(out);
        self.kind.put(out);
        for number in [self.mode, self.nlink, self.uid, self.gid, self.io_size] {
            number.put(out);
        }
        for number in [self.rdev, self.size, self.allocated, self.change] {
            number.put(out);
        }
        for time in [self.atime, self.mtime, self.ctime] {
            time.put(out);
        }
        self.btime.put(out);
        self.dos.put(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (node, kind) = <(NodeId, FileKind)>::take(from)?;
        let mut small = || u32::take(from);
        let (mode, nlink, uid, gid, io_size) = (small()?, small()?, small()?, small()?, small()?);
        let mut large = || u64::take(from);
        let (rdev, size, allocated, change) = (large()?, large()?, large()?, large()?);
        let mut time = || Time::take(from);
        let (atime, mtime, ctime) = (time()?, time()?, time()?);
        let is_right = mode & !0o7777 == 0 && size.max(allocated) <= i64::MAX as u64;
        is_right.then_some(())?;
        Some(Self {
            node,
            kind,
            mode,
            nlink,
            uid,
            gid,
            rdev,
            size,
            allocated,
            io_size,
            atime,
            mtime,
            ctime,
            btime: Field::take(from)?,
            change,
            dos: Field::take(from)?,
        })
    }
}
