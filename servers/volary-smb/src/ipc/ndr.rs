//! NDR (C706 chapter 14), little-endian: the encoding of calls' arguments.

use crate::wire::{Cursor, Out, Short};

/// Decodes arguments.
pub(super) struct Args<'a> {
    all: &'a [u8],
    rest: Cursor<'a>,
}

impl<'a> Args<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            all: bytes,
            rest: Cursor::new(bytes),
        }
    }

    /// Returns a number at its natural alignment.
    pub(super) fn u32(&mut self) -> Result<u32, Short> {
        let read = self.all.len() - self.rest.rest().len();
        self.rest.skip(read.next_multiple_of(4) - read)?;
        self.rest.u32()
    }

    /// Returns a string without its NUL.
    pub(super) fn string(&mut self) -> Result<String, Short> {
        let (_max, offset, len) = (self.u32()?, self.u32()?, self.u32()?);
        if offset != 0 {
            return Err(Short);
        }
        let bytes = self
            .rest
            .take((len as usize).checked_mul(2).ok_or(Short)?)?;
        let units = bytes
            .chunks_exact(2)
            .filter_map(|u| u.first_chunk().copied());
        let units: Vec<u16> = units.map(u16::from_le_bytes).collect();
        let text = String::from_utf16(&units).map_err(|_| Short)?;
        Ok(text.trim_end_matches('\0').to_owned())
    }

    /// Returns the value behind a pointer, which follows it directly, or `None` if it is null.
    pub(super) fn pointed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Short>,
    ) -> Result<Option<T>, Short> {
        if self.u32()? == 0 {
            return Ok(None);
        }
        read(self).map(Some)
    }
}

/// Encodes results. Strings behind pointers follow the structure.
#[derive(Default)]
pub(super) struct Results {
    out: Out,
    referents: u32,
    strings: Vec<String>,
}

impl Results {
    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        self.out.align(4);
        self.out.u32(value);
        self
    }

    /// Appends a pointer that is not null.
    pub(super) fn pointer(&mut self) -> &mut Self {
        self.referents += 1;
        let referent = 0x0002_0000 + 4 * self.referents;
        self.u32(referent)
    }

    /// Appends a pointer to a string, which [`strings`](Self::strings) appends.
    pub(super) fn string(&mut self, text: &str) -> &mut Self {
        self.strings.push(text.to_owned());
        self.pointer()
    }

    /// Appends the strings behind pointers.
    pub(super) fn strings(&mut self) -> &mut Self {
        for text in std::mem::take(&mut self.strings) {
            let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
            let len = crate::wire::out::len32(units.len());
            self.u32(len).u32(0).u32(len);
            for unit in units {
                self.out.u16(unit);
            }
        }
        self
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.out.done()
    }
}
