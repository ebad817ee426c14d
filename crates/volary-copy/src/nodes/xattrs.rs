//! Extended attributes: which are copied, and how one of them stores DOS attributes.

use rustix::io::Errno;

/// Name and value.
pub(crate) type Xattr = (Vec<u8>, Vec<u8>);

/// The most bytes of attribute values that are copied for one node.
pub(crate) const ROOM: usize = 16 << 20;

/// The attribute in which Samba, and volary's server, keep DOS attributes if the volume cannot
/// store them.
pub(crate) const DOS: &[u8] = b"user.DOSATTRIB";

/// DOS attributes that no other attribute reflects: hidden and system.
pub(crate) const DOS_HIDING: u8 = 2 | 4;

/// The DOS attributes that a volume can keep.
const DOS_ALL: u32 = 1 | 2 | 4 | 0x20;

/// Returns whether an attribute controls a feature of the volume, such as keeping versions, and is
/// no data of the file.
pub fn is_virtual(name: &[u8]) -> bool {
    name.starts_with(b"user.cedar.")
}

/// Returns whether the target sets the attribute by itself, so that nothing is lost if the copy
/// cannot: security labels of the host.
pub(crate) fn is_label(name: &[u8]) -> bool {
    name == b"security.selinux"
}

/// Returns DOS attributes as a value of [`DOS`].
pub(crate) fn dos_value(dos: u8) -> Vec<u8> {
    format!("{dos:#x}").into_bytes()
}

/// Returns the DOS attributes in a value of [`DOS`]: a hexadecimal number. Samba appends more after
/// it.
pub(crate) fn dos_of(value: &[u8]) -> Option<u8> {
    let digits = value.strip_prefix(b"0x")?;
    let len = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let digits = std::str::from_utf8(digits.get(..len)?).ok()?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    u8::try_from(number & DOS_ALL).ok()
}

/// The longest list of names, and the longest value, on Linux.
const LONGEST: usize = 64 << 10;

/// Returns the bytes that a system call writes into the buffer it is given.
///
/// # Errors
/// Those of the call.
pub(crate) fn with_room(
    call: impl Fn(&mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<u8>, Errno> {
    // Most values are short.
    let mut bytes = vec![0; 1024];
    let len = match call(&mut bytes) {
        Err(Errno::RANGE) => {
            bytes = vec![0; LONGEST];
            call(&mut bytes)
        }
        called => called,
    };
    bytes.truncate(len?);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dos_attributes_are_read_as_they_are_written() {
        for dos in [0, 2, 0x27] {
            assert_eq!(dos_of(&dos_value(dos)), Some(dos));
        }
        assert_eq!(dos_of(b"0x222\0\0\x03\0"), Some(0x22));
        assert_eq!(dos_of(b"22"), None);
    }
}
