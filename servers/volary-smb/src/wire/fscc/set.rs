//! Parses the information that a client sets (MS-FSCC 2.4).

use super::le::{part, slice_at, u8_at, u16_at, u32_at, u64_at};

/// `FileBasicInformation`. A time of 0 leaves the file's, -1 freezes it, and -2 lets the open
/// change it again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basic {
    pub(crate) created: u64,
    pub(crate) accessed: u64,
    pub(crate) written: u64,
    pub(crate) changed: u64,
    pub(crate) attributes: u32,
}

/// Parses it. Returns `None` if it is too short.
pub(crate) fn basic(buf: &[u8]) -> Option<Basic> {
    (buf.len() >= 40).then_some(())?;
    Some(Basic {
        created: u64_at(buf, 0)?,
        accessed: u64_at(buf, 8)?,
        written: u64_at(buf, 16)?,
        changed: u64_at(buf, 24)?,
        attributes: u32_at(buf, 32)?,
    })
}

/// `FileRenameInformation`, `FileRenameInformationEx` and `FileLinkInformation`, in SMB2's form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewName<'a> {
    pub(crate) flags: u32,
    pub(crate) root: u64,
    /// The new path from the share's root on, in UTF-16LE.
    pub(crate) name: &'a [u8],
}

/// Parses it. With `extended`, it has four bytes of flags, and otherwise one byte that says whether
/// to replace.
pub(crate) fn new_name(buf: &[u8], extended: bool) -> Option<NewName<'_>> {
    let flags = if extended {
        u32_at(buf, 0)?
    } else {
        u32::from(u8_at(buf, 0)? != 0)
    };
    Some(NewName {
        flags,
        root: u64_at(buf, 8)?,
        name: part(buf, 20, u32_at(buf, 16)?)?,
    })
}

/// An extended attribute from a `FileFullEaInformation` list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ea<'a> {
    pub(crate) flags: u8,
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Parses a list. Returns `None` if it is malformed.
pub(crate) fn full_ea(mut buf: &[u8]) -> Option<Vec<Ea<'_>>> {
    let mut list = Vec::new();
    loop {
        let next = usize::try_from(u32_at(buf, 0)?).ok()?;
        let name_len = usize::from(u8_at(buf, 5)?);
        let value_len = usize::from(u16_at(buf, 6)?);
        list.push(Ea {
            flags: u8_at(buf, 4)?,
            name: slice_at(buf, 8, name_len)?,
            value: slice_at(buf, name_len.checked_add(9)?, value_len)?,
        });
        if next == 0 {
            return Some(list);
        }
        // Each step advances by at least the fixed part.
        buf = (next >= 8).then(|| buf.get(next..))??;
    }
}

/// Returns the names in a `FILE_GET_EA_INFORMATION` list.
pub(crate) fn get_ea(mut buf: &[u8]) -> Option<Vec<&[u8]>> {
    let mut list = Vec::new();
    loop {
        let next = usize::try_from(u32_at(buf, 0)?).ok()?;
        list.push(slice_at(buf, 5, usize::from(u8_at(buf, 4)?))?);
        if next == 0 {
            return Some(list);
        }
        buf = (next >= 6).then(|| buf.get(next..))??;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ea_lists_are_read_and_torn_ones_refused() {
        let mut buf = vec![16, 0, 0, 0, 0, 1, 2, 0, b'A', 0, 1, 2, 0, 0, 0, 0];
        buf.extend([0, 0, 0, 0, 0x80, 2, 0, 0, b'B', b'C', 0]);
        let list = full_ea(&buf).unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].name, list[0].value), (&b"A"[..], &[1, 2][..]));
        assert_eq!((list[1].flags, list[1].name), (0x80, &b"BC"[..]));
        for len in 0..buf.len() - 1 {
            assert!(full_ea(&buf[..len]).is_none(), "{len}");
        }
        assert!(full_ea(&[1, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
    }

    #[test]
    fn new_names_are_within_the_request() {
        let mut buf = vec![0; 20];
        buf[0] = 1;
        buf[16] = 2;
        buf.extend([b'x', 0]);
        assert_eq!(new_name(&buf, false).unwrap().name, [b'x', 0]);
        buf[16] = 4;
        assert!(new_name(&buf, false).is_none());
    }
}
