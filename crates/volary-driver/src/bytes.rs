//! A range of a device, read with bounds checks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{BlockDevice, Error, Result};

/// A range of a device. A read past its end fails with `Corrupt`, which names the structure and its
/// offset on the device: lengths and offsets come from the volume, and may be wrong.
#[derive(Clone)]
pub struct Bytes {
    dev: Arc<dyn BlockDevice>,
    start: u64,
    len: u64,
}

impl Bytes {
    /// Returns the whole of a device.
    pub fn whole(dev: Arc<dyn BlockDevice>) -> Self {
        let len = dev.geometry().size;
        Self { dev, start: 0, len }
    }

    /// Returns whether a device has these bytes at `offset`: for
    /// [`probe`](volary_core::Format::probe).
    ///
    /// # Errors
    /// `Io`.
    pub fn begins_with(dev: &dyn BlockDevice, offset: u64, magic: &[u8]) -> Result<bool> {
        let end = offset.checked_add(magic.len() as u64);
        if end.is_none_or(|end| end > dev.geometry().size) {
            return Ok(false);
        }
        let mut found = vec![0; magic.len()];
        dev.read_at(offset, &mut found)?;
        Ok(found == magic)
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the offset on the device.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.dev
    }

    /// Returns the `len` bytes from `offset` on as a range.
    ///
    /// # Errors
    /// `Corrupt` if the range ends before.
    pub fn part(&self, what: &'static str, offset: u64, len: u64) -> Result<Self> {
        Ok(Self {
            dev: self.dev.clone(),
            start: self.place(what, offset, len)?,
            len,
        })
    }

    /// Fills `buf` from `offset` on.
    ///
    /// # Errors
    /// `Corrupt` if the range ends before; `Io`.
    pub fn read(&self, what: &'static str, offset: u64, buf: &mut [u8]) -> Result<()> {
        let at = self.place(what, offset, buf.len() as u64)?;
        self.dev.read_at(at, buf)
    }

    /// Returns `N` bytes from `offset` on: `u32::from_le_bytes(bytes.array("the length", 8)?)`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn array<const N: usize>(&self, what: &'static str, offset: u64) -> Result<[u8; N]> {
        let mut array = [0; N];
        self.read(what, offset, &mut array)?;
        Ok(array)
    }

    /// Returns `len` bytes from `offset` on, at most `most`. Checks the length, which comes from
    /// the volume, before it allocates memory.
    ///
    /// # Errors
    /// `Corrupt` if `len` exceeds `most`; as [`read`](Self::read).
    pub fn vec(&self, what: &'static str, offset: u64, len: u64, most: usize) -> Result<Vec<u8>> {
        let fits = usize::try_from(len).ok().filter(|len| *len <= most);
        let Some(len) = fits else {
            return Err(self.corrupt(
                what,
                offset,
                format!("{len} bytes long"),
                format!("at most {most} bytes"),
            ));
        };
        self.place(what, offset, len as u64)?;
        let mut bytes = vec![0; len];
        self.read(what, offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns the range as a stream, for libraries that parse one.
    pub fn cursor(&self) -> Cursor {
        Cursor {
            bytes: self.clone(),
            at: 0,
            left: None,
        }
    }

    /// Returns the error for a structure that makes no sense, at `offset` of this range.
    pub fn corrupt(
        &self,
        what: &'static str,
        offset: u64,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Error {
        Error::corrupt(what, self.start.saturating_add(offset), found, expected)
    }

    /// Converts the error of a library that read a [`Cursor`]. Returns the device's own error,
    /// however deeply the library nests it, or else `Corrupt` for `what`.
    #[expect(clippy::needless_pass_by_value, reason = "as `map_err` has it")]
    pub fn failed(&self, what: &'static str, offset: u64, e: io::Error) -> Error {
        own(&e).unwrap_or_else(|| {
            self.corrupt(
                what,
                offset,
                format!("unreadable ({e})"),
                "one that makes sense",
            )
        })
    }

    /// Returns the place on the device of `len` bytes at `offset`.
    fn place(&self, what: &'static str, offset: u64, len: u64) -> Result<u64> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.start + offset),
            _ => {
                let found = format!("{len} bytes long");
                Err(self.corrupt(
                    what,
                    offset,
                    found,
                    format!("an end before byte {}", self.start + self.len),
                ))
            }
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({} from {})", self.len, self.start)
    }
}

/// A [`Bytes`] range as a stream. A failure of the device keeps its [`Error`] within the
/// [`io::Error`]: see [`Bytes::failed`].
#[derive(Clone, Debug)]
pub struct Cursor {
    bytes: Bytes,
    at: u64,
    /// How many bytes may still be read before the allowance is renewed.
    left: Option<Arc<AtomicU64>>,
}

/// Returns the [`Error`] in a chain of errors, if there is one.
fn own(e: &io::Error) -> Option<Error> {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(e);
    while let Some(e) = at {
        if let Some(own) = e.downcast_ref::<Error>() {
            return Some(own.clone());
        }
        // `source()` of an `io::Error` skips the error that it wraps.
        at = match e.downcast_ref::<io::Error>() {
            Some(e) => e.get_ref().map(|inner| inner as _),
            None => e.source(),
        };
    }
    None
}

/// A renewable bound on the bytes read from a [`Cursor`].
#[derive(Debug)]
pub struct Allowance {
    left: Arc<AtomicU64>,
    most: u64,
}

impl Cursor {
    /// Bounds the stream: reads fail once `most` bytes were read since the start or the last
    /// renewal. For libraries that keep as much as the volume claims to have. A sixteenth of
    /// `Attach::memory` is enough for most. Memory that a library takes before it reads is not
    /// counted.
    pub fn bounded(mut self, most: u64) -> (Self, Allowance) {
        let left = Arc::new(AtomicU64::new(most));
        self.left = Some(left.clone());
        (self, Allowance { left, most })
    }

    /// Deducts `len` bytes from the allowance.
    fn spend(&self, len: u64) -> io::Result<()> {
        let Some(left) = &self.left else {
            return Ok(());
        };
        let spent = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(len));
        let too_long = |_| io::Error::other("it is longer than it may be");
        spent.map(drop).map_err(too_long)
    }
}

impl Allowance {
    /// Allows the full number of bytes again.
    pub fn renew(&self) {
        self.left.store(self.most, Ordering::Relaxed);
    }
}

impl io::Read for Cursor {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.len.saturating_sub(self.at);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let Some(buf) = buf.get_mut(..len).filter(|buf| !buf.is_empty()) else {
            return Ok(0);
        };
        self.spend(buf.len() as u64)?;
        self.bytes
            .read("a stream", self.at, buf)
            .map_err(io::Error::other)?;
        self.at += len as u64;
        Ok(len)
    }
}

impl io::Seek for Cursor {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let at = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::End(by) => self.bytes.len.checked_add_signed(by),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, SeekFrom};
    use volary_block::MemDevice;
    use volary_core::Kind;

    fn bytes() -> Bytes {
        let all: Vec<u8> = (0..=255).cycle().take(1024).collect();
        Bytes::whole(Arc::new(MemDevice::from_vec(all)))
    }

    #[test]
    fn what_lies_past_the_end_is_damage_at_its_place() {
        let part = bytes().part("a part", 100, 50).unwrap();
        assert_eq!(part.array::<2>("two", 48).unwrap(), [148, 149]);
        for (offset, len) in [(49, 2), (u64::MAX, 1), (0, 51), (51, 0)] {
            let e = part.read("a field", offset, &mut vec![0; len]).unwrap_err();
            let corrupt = e.as_corrupt().expect("damage");
            assert_eq!(corrupt.what, "a field");
            assert_eq!(corrupt.offset, 100_u64.saturating_add(offset));
        }
        assert!(part.part("more", 0, u64::MAX).is_err());
    }

    #[test]
    fn no_memory_is_taken_for_a_length_that_cannot_be() {
        let bytes = bytes();
        assert_eq!(bytes.vec("v", 1, 3, 10).unwrap(), [1, 2, 3]);
        assert_eq!(bytes.vec("v", 0, 11, 10).unwrap_err(), Kind::Corrupt);
        assert_eq!(
            bytes.vec("v", 0, u64::MAX, usize::MAX).unwrap_err(),
            Kind::Corrupt
        );
    }

    /// A library's error that wraps another.
    #[derive(Debug)]
    struct Library(io::Error);

    impl std::fmt::Display for Library {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "the library failed")
        }
    }

    impl std::error::Error for Library {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn the_devices_error_is_found_within_a_librarys() {
        let device = || Error::note(Kind::Io, "a bad sector");
        let within = io::Error::other(Library(io::Error::other(device())));
        let e = bytes().failed("an archive", 7, within);
        assert_eq!((e.kind(), e.to_string()), (Kind::Io, device().to_string()));
        let e = bytes().failed("an archive", 7, io::Error::other("no such method"));
        let corrupt = e.as_corrupt().expect("damage");
        assert_eq!((corrupt.what, corrupt.offset), ("an archive", 7));
    }

    #[test]
    fn a_stream_ends_where_the_bytes_do_and_keeps_the_devices_error() {
        let part = bytes().part("a part", 1000, 24).unwrap();
        let (mut cursor, mut all) = (part.cursor(), Vec::new());
        cursor.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 24);
        assert_eq!(cursor.seek(SeekFrom::Current(-1)).unwrap(), 23);
        assert!(cursor.seek(SeekFrom::End(-25)).is_err());
        cursor.seek(SeekFrom::Start(u64::MAX)).unwrap();
        assert_eq!(cursor.read(&mut [0]).unwrap(), 0);
        let device = Error::io("read", 1, 2, "gone");
        assert_eq!(part.failed("x", 0, io::Error::other(device)), Kind::Io);
        assert_eq!(part.failed("x", 0, io::Error::other("odd")), Kind::Corrupt);
    }

    #[test]
    fn a_bounded_stream_gives_no_more_than_is_allowed() {
        let (mut cursor, allowance) = bytes().cursor().bounded(100);
        let mut buf = [0; 60];
        cursor.read_exact(&mut buf).unwrap();
        let e = cursor.read_exact(&mut buf).unwrap_err();
        assert_eq!(bytes().failed("a name", 60, e), Kind::Corrupt);
        allowance.renew();
        cursor.read_exact(&mut buf).unwrap();
        assert_eq!(buf[0], 60);
    }

    #[test]
    fn a_sign_past_the_end_is_none() {
        let dev = MemDevice::from_vec(vec![7; 512]);
        assert!(Bytes::begins_with(&dev, 510, &[7, 7]).unwrap());
        assert!(!Bytes::begins_with(&dev, 511, &[7, 7]).unwrap());
        assert!(!Bytes::begins_with(&dev, u64::MAX, &[7]).unwrap());
    }
}
