//! FSCTLs that are passed to the driver as its own `ioctl` codes
//! ([`FileSystem::ioctl`](volary_core::FileSystem::ioctl)). Linux mounts pass these codes too.
//!
//! Those codes have Linux's form: direction, size, letter and number (`_IOW('V', 1, int)`). Windows
//! has its own form (MS-FSCC 2.3, `CTL_CODE`): device, required access, function and method. Driver
//! vendors may use devices from 0x8000 and functions from 0x800 on:
//!
//! | bits | FSCTL | becomes |
//! |---|---|---|
//! | 31–16 | 0x8000 and the letter | the letter, bits 15–8 |
//! | 15–14 | 1 reads, 2 writes, 3 both, 0 neither | 2, 1, 3, 0: bits 31–30 |
//! | 13–2 | 0x800 and the number | the number, bits 7–0 |
//! | 1–0 | 0: buffered | |
//!
//! The size (bits 29–16) is that of the input if something is written. Otherwise, it is the room
//! for the output if something is read.

use super::access;
use super::fsctl::Asked;
use super::open::File;
use crate::answer::Failure;
use crate::files::call::Call;
use crate::wire::Status;
use volary_core::Kind;

const READS: u32 = 1;
const WRITES: u32 = 2;
/// The largest size in a code.
const SIZE_MAX: usize = 0x3fff;

/// A driver's code in an FSCTL: the required access, and Linux's code without the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code {
    needs: u32,
    code: u32,
}

impl Code {
    /// Returns the driver's code in an FSCTL, or `None` if it is not one.
    fn of(fsctl: u32) -> Option<Self> {
        let (device, function, method) = (fsctl >> 16, fsctl >> 2 & 0xfff, fsctl & 3);
        let needs = fsctl >> 14 & 3;
        let is_ours = device & 0xff00 == 0x8000 && function & 0xf00 == 0x800 && method == 0;
        let direction = (needs & READS) << 1 | needs >> 1;
        is_ours.then_some(Self {
            needs,
            code: direction << 30 | (device & 0xff) << 8 | function & 0xff,
        })
    }
}

/// Passes an FSCTL to the driver.
///
/// # Errors
/// `INVALID_DEVICE_REQUEST` if it is not a driver's code, or the driver does not know it;
/// `INVALID_PARAMETER` for a size that no code can express. `ACCESS_DENIED` without the right to
/// read or write data that the code needs, and on a read-only share for a code that may change
/// something; those of the driver.
pub(super) fn on(call: &Call<'_>, file: &File, asked: &Asked<'_>) -> Result<Vec<u8>, Failure> {
    let code = Code::of(asked.code).ok_or(Status::INVALID_DEVICE_REQUEST)?;
    let size = match code.needs {
        0 => 0,
        READS => asked.max,
        _ => asked.input.len(),
    };
    if size > SIZE_MAX {
        return Err(Status::INVALID_PARAMETER.into());
    }
    for (need, right) in [(READS, access::READ_DATA), (WRITES, access::WRITE_DATA)] {
        if code.needs & need != 0 {
            file.need_any(right)?;
        }
    }
    if code.needs != READS && call.tree.is_read_only() {
        return Err(Status::ACCESS_DENIED.into());
    }
    let code = code.code | (size as u32) << 16;
    match call.waiting().ioctl(file.open, code, asked.input) {
        Err(e) if e == Kind::Unsupported => Err(Status::INVALID_DEVICE_REQUEST.into()),
        answer => Ok(answer?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_codes_have_a_range_of_their_own() {
        let of = |fsctl| Code::of(fsctl).map(|code| (code.needs, code.code));
        // _IOW('V', 1, …), _IOR('V', 2, …), _IOWR('a', 255, …), _IO('a', 0).
        assert_eq!(of(0x8056_a004), Some((2, 0x4000_5601)));
        assert_eq!(of(0x8056_6008), Some((1, 0x8000_5602)));
        assert_eq!(of(0x8061_e3fc), Some((3, 0xc000_61ff)));
        assert_eq!(of(0x8061_2000), Some((0, 0x0000_6100)));
        for other in [
            0x0009_00a8,
            0x8056_a005,
            0x8156_a004,
            0x8056_8004,
            0x8056_b004,
        ] {
            assert_eq!(of(other), None, "{other:x}");
        }
    }
}
